//! The pages that describe Nudge: the rules, and the tables of methods, commands and settings. They are Markdown files
//! in `nudge/docs/`.
//!
//! Links in the pages lead to these modules, because Markdown uses the first of two definitions of a link.

pub mod semantics {
    //! The rules of Nudge for every caller. Code and tests cite the sections of this page by number.
    //!
    //! [methods]: super::methods
    //! [rpc]: super::rpc
    //! [command-line]: super::command_line
    //! [settings]: super::settings
    //!
    #![doc = include_str!("../docs/semantics.md")]
}

pub mod methods {
    //! The table of methods and errors.
    //!
    //! [semantics]: super::semantics
    //! [settings]: super::settings
    //! [rpc]: super::rpc
    //!
    #![doc = include_str!("../docs/methods.md")]
}

pub mod rpc {
    //! HTTP, MCP, and calls with a key.
    //!
    //! [semantics]: super::semantics
    //! [methods]: super::methods
    //!
    #![doc = include_str!("../docs/rpc.md")]
}

pub mod command_line {
    //! The commands, flags, streams and exit codes of the binary.
    //!
    //! [methods]: super::methods
    //! [rpc]: super::rpc
    //! [settings]: super::settings
    //!
    #![doc = include_str!("../docs/command-line.md")]
}

pub mod settings {
    //! The settings: file, variables, flags and defaults.
    //!
    //! [semantics]: super::semantics
    //!
    #![doc = include_str!("../docs/settings.md")]
}
