//! Is empty: this package only has tests. It runs the vectors through the library for builds that repeat often, such as
//! mutation testing. The tests of `nudge-tests` also build the crates of the binary.
