//! The settings of the brain.

use nudge_core::settings::{Flag, Kind, Setting};

use crate::llm::ENGINES;

/// The table.
pub static SETTINGS: &[Setting] = &[
    Setting {
        name: "brain.root",
        kind: Kind::Text,
        default: "",
        flag: Flag::Value("DIR"),
        about: "Folder of the brain, where a caller names no other",
    },
    Setting {
        name: "brain.fusion",
        kind: Kind::OneOf(&["relevance", "ranks", "seed"]),
        default: "relevance",
        flag: Flag::Value("HOW"),
        about: "How words and meaning make one order: by the relevance of all sources, by ranks, or by ranks as specified",
    },
    Setting {
        name: "brain.bolt",
        kind: Kind::Text,
        default: "",
        flag: Flag::Value("URL"),
        about: "Graph server that follows relations: bolt://HOST:PORT of this machine, or bolt+s://HOST:PORT",
    },
    Setting {
        name: "brain.bolt_user",
        kind: Kind::Text,
        default: "",
        flag: Flag::Value("NAME"),
        about: "User of the graph server; nobody logs in without one",
    },
    Setting {
        name: "brain.bolt_password",
        kind: Kind::Secret,
        default: "",
        flag: Flag::None,
        about: "Password of that user; the environment alone may hold it",
    },
    Setting {
        name: "brain.bolt_database",
        kind: Kind::Text,
        default: "neo4j",
        flag: Flag::Value("NAME"),
        about: "Database of the graph server",
    },
    Setting {
        name: "brain.answer",
        kind: Kind::Switch,
        default: "false",
        flag: Flag::None,
        about: "`nudge ask` sends the question and the sections found to brain.llm, and prints its answer with the units it cites",
    },
    Setting {
        name: "brain.rerank",
        kind: Kind::OneOf(&["off", "llm"]),
        default: "off",
        flag: Flag::None,
        about: "llm sends who asks the brain's question, and the best sections, to brain.llm, which puts them in order within 4 s",
    },
    Setting {
        name: "brain.llm",
        kind: Kind::OneOf(ENGINES),
        default: "auto",
        flag: Flag::None,
        about: "The language model that is asked where capture, brain.answer or brain.rerank wants one: claude or codex (your own), anthropic or openai (an API), command; auto is claude",
    },
    Setting {
        name: "brain.llm_command",
        kind: Kind::Text,
        default: "",
        flag: Flag::None,
        about: "The command that is asked: the request as JSON on stdin, the answer as JSON on stdout",
    },
    Setting {
        name: "brain.llm_model",
        kind: Kind::Text,
        default: "",
        flag: Flag::None,
        about: "Model that is asked, in the place of the engine's own",
    },
    Setting {
        name: "brain.llm_url",
        kind: Kind::Text,
        default: "",
        flag: Flag::None,
        about: "Address of the API, in the place of its maker's; http:// for this machine alone",
    },
    Setting {
        name: "brain.llm_seconds",
        kind: Kind::Count,
        default: "180",
        flag: Flag::None,
        about: "Most seconds that an answer takes",
    },
];
