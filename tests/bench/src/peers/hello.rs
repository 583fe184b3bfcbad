//! Is the smallest program that prints something; `tests/bench/run` builds it as it builds Nudge. It shows the cost of
//! a process that does no work.

fn main() {
    println!("hello");
}
