//! Nothing but a test: the vectors through the library, for whoever builds them often, as mutation testing does. The
//! tests of `nudge-tests` take the binary's crates to build.
