//! The languages, and a table for each: which syntax means what.

mod c;
#[cfg(feature = "code-all")]
mod c_sharp;
mod common;
mod ecma;
mod go;
mod grammar;
mod java;
#[cfg(feature = "code-all")]
mod php;
mod python;
#[cfg(feature = "code-all")]
mod ruby;
mod rust;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

pub(crate) use grammar::{Grammar, Shape, Spec, Visit};

/// A language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is its name")]
pub enum Language {
    Rust,
    Python,
    JavaScript,
    TypeScript,
    Tsx,
    Go,
    Java,
    C,
    Cpp,
    Ruby,
    CSharp,
    Php,
}

impl Language {
    /// The language of a file, by its extension; none if this build does not read it.
    pub fn of(path: &str) -> Option<Self> {
        let file = path.rsplit('/').next()?;
        let (stem, extension) = file.rsplit_once('.')?;
        if stem.is_empty() {
            return None;
        }
        let language = match extension {
            "rs" => Self::Rust,
            "py" | "pyi" => Self::Python,
            "js" | "jsx" | "mjs" | "cjs" => Self::JavaScript,
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" => Self::Tsx,
            "go" => Self::Go,
            "java" => Self::Java,
            "c" | "h" => Self::C,
            "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" => Self::Cpp,
            "rb" => Self::Ruby,
            "cs" => Self::CSharp,
            "php" => Self::Php,
            _ => return None,
        };
        let large = matches!(language, Self::Cpp | Self::Ruby | Self::CSharp | Self::Php);
        (!large || cfg!(feature = "code-all")).then_some(language)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::TypeScript => "typescript",
            Self::Tsx => "tsx",
            Self::Go => "go",
            Self::Java => "java",
            Self::C => "c",
            Self::Cpp => "cpp",
            Self::Ruby => "ruby",
            Self::CSharp => "c-sharp",
            Self::Php => "php",
        }
    }

    /// Its tables.
    pub(crate) fn grammar(self) -> Option<&'static Grammar> {
        macro_rules! table {
            ($spec:expr) => {{
                static TABLE: LazyLock<Grammar> = LazyLock::new(|| Grammar::new(&$spec));
                Some(&*TABLE)
            }};
        }
        match self {
            Self::Rust => table!(rust::SPEC),
            Self::Python => table!(python::SPEC),
            Self::JavaScript => table!(ecma::JAVASCRIPT),
            Self::TypeScript => table!(ecma::TYPESCRIPT),
            Self::Tsx => table!(ecma::TSX),
            Self::Go => table!(go::SPEC),
            Self::Java => table!(java::SPEC),
            Self::C => table!(c::SPEC),
            #[cfg(feature = "code-all")]
            Self::Cpp => table!(c::CPP),
            #[cfg(feature = "code-all")]
            Self::CSharp => table!(c_sharp::SPEC),
            #[cfg(feature = "code-all")]
            Self::Php => table!(php::SPEC),
            #[cfg(feature = "code-all")]
            Self::Ruby => table!(ruby::SPEC),
            #[cfg(not(feature = "code-all"))]
            Self::Cpp | Self::CSharp | Self::Php | Self::Ruby => None,
        }
    }

    /// Whether it is JavaScript or TypeScript, whose files use each other.
    pub(crate) fn is_ecma(self) -> bool {
        matches!(self, Self::JavaScript | Self::TypeScript | Self::Tsx)
    }

    /// Whether members of one name are told apart by something else: their parameters, the build.
    pub(crate) fn overloads(self) -> bool {
        matches!(self, Self::Rust | Self::Java | Self::Cpp | Self::CSharp)
    }

    /// Whether a bare name may be a member of the class around it.
    pub(crate) fn implies_this(self) -> bool {
        matches!(self, Self::Java | Self::Cpp | Self::CSharp | Self::Ruby)
    }

    /// Whether files of both may use each other.
    pub(crate) fn speaks(self, other: Self) -> bool {
        self == other
            || self.is_ecma() && other.is_ecma()
            || matches!((self, other), (Self::C | Self::Cpp, Self::C | Self::Cpp))
    }
}
