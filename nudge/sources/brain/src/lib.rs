//! Brain: knowledge in markdown files that people own, found by words, by meaning and by relation.
//!
//! The files are the only truth: an index of them lies in the folder for caches, follows them, and can be made again at
//! any time. Nothing but a call that says so ever writes a file, and then one field or one new file. `SOURCE` brings
//! it to the surfaces.
//!
//! | module | what |
//! |---|---|
//! | `front`, `splice` | frontmatter: reading it, changing one field of it |
//! | `outline`, `chunk` | what a text is made of; the pieces that are found |
//! | `unit`, `config` | what a file says of itself, and `brain.yaml` of all |
//! | `folder` | which files are units; reading and writing them |

pub mod chunk;
mod config;
mod folder;
pub mod front;
pub mod outline;
pub mod splice;
mod unit;
