//! The smallest program that prints something, built by `tests/bench/run` as Nudge's own is: what a
//! process costs before it does anything.

fn main() {
    println!("hello");
}
