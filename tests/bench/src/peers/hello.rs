//! Prints a word: the smallest program that prints something. It shows the cost of a process without work.
//! `tests/bench/run` builds it in the same way as Nudge.

fn main() {
    println!("hello");
}
