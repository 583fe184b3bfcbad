//! Is empty, because this package only has tests. It runs the test vectors through the library for builds that repeat
//! often, such as mutation testing. The tests of `nudge-tests` would also build the crates of the binary.
