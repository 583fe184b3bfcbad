//! Lists the settings of the brain.

use nudge_core::settings::{ServeFlag, Setting, SettingKind};

use crate::llm::ENGINES;

/// The settings of the source.
pub static SETTINGS: &[Setting] = &[
    Setting {
        name: "brain.root",
        kind: SettingKind::Text,
        default: "",
        flag: ServeFlag::Value("DIR"),
        about: "Folder of the brain, where a caller names no other",
    },
    Setting {
        name: "brain.fusion",
        kind: SettingKind::OneOf(&["relevance", "ranks", "seed"]),
        default: "relevance",
        flag: ServeFlag::Value("HOW"),
        about: "How words and meaning make one order: by the relevance of all sources, by ranks, or by ranks as specified",
    },
    Setting {
        name: "brain.bolt",
        kind: SettingKind::Text,
        default: "",
        flag: ServeFlag::Value("URL"),
        about: "Graph server that follows relations: bolt://HOST:PORT of this machine, or bolt+s://HOST:PORT",
    },
    Setting {
        name: "brain.bolt_user",
        kind: SettingKind::Text,
        default: "",
        flag: ServeFlag::Value("NAME"),
        about: "User of the graph server; without one there is no login",
    },
    Setting {
        name: "brain.bolt_password",
        kind: SettingKind::Secret,
        default: "",
        flag: ServeFlag::None,
        about: "Password of that user; the environment alone may hold it",
    },
    Setting {
        name: "brain.bolt_database",
        kind: SettingKind::Text,
        default: "neo4j",
        flag: ServeFlag::Value("NAME"),
        about: "Database of the graph server",
    },
    Setting {
        name: "brain.answer",
        kind: SettingKind::Switch,
        default: "false",
        flag: ServeFlag::None,
        about: "`nudge ask` sends the question and the sections found to brain.llm, and prints its answer with the units it cites",
    },
    Setting {
        name: "brain.rerank",
        kind: SettingKind::OneOf(&["off", "llm"]),
        default: "off",
        flag: ServeFlag::None,
        about: "llm sends each question to the brain, and the best sections, to brain.llm, which puts them in order within 4 s",
    },
    Setting {
        name: "brain.llm",
        kind: SettingKind::OneOf(ENGINES),
        default: "auto",
        flag: ServeFlag::None,
        about: "The language model that is asked where capture, brain.answer or brain.rerank wants one: claude or codex (your own), anthropic or openai (an API), command; auto is claude",
    },
    Setting {
        name: "brain.llm_command",
        kind: SettingKind::Text,
        default: "",
        flag: ServeFlag::None,
        about: "The command that is asked: the request as JSON on stdin, the answer as JSON on stdout",
    },
    Setting {
        name: "brain.llm_model",
        kind: SettingKind::Text,
        default: "",
        flag: ServeFlag::None,
        about: "Model that is asked, in the place of the engine's own",
    },
    Setting {
        name: "brain.llm_url",
        kind: SettingKind::Text,
        default: "",
        flag: ServeFlag::None,
        about: "Address of the API, in the place of its maker's; http:// for this machine alone",
    },
    Setting {
        name: "brain.llm_seconds",
        kind: SettingKind::Count,
        default: "180",
        flag: ServeFlag::None,
        about: "Most seconds that an answer takes",
    },
];
