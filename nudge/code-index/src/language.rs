//! Lists the languages. A table for each language says how to read its syntax.

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

pub(crate) use grammar::{Grammar, LanguageSpec, SyntaxShape, Visit, WalkExtent};
pub(crate) use python::member_name;

/// A programming language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is its name")]
pub enum CodeLanguage {
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

impl CodeLanguage {
    /// Returns the language of a file by its extension; `None` if this build does not support it.
    pub fn from_path(path: &str) -> Option<Self> {
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

    /// Returns the name of the language, for people.
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

    /// Returns the grammar and its tables; `None` if this build does not have them.
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

    /// Returns true for JavaScript and TypeScript, whose files use each other.
    pub(crate) fn is_ecma(self) -> bool {
        matches!(self, Self::JavaScript | Self::TypeScript | Self::Tsx)
    }

    /// Returns true if an argument must have the declared type of its parameter.
    pub(crate) fn types_must_fit(self) -> bool {
        matches!(self, Self::Rust | Self::Go | Self::Java | Self::C | Self::Cpp | Self::CSharp)
    }

    /// Returns true if several members of a type may have the same name. They differ in their parameters, or in their
    /// build conditions (`cfg`).
    pub(crate) fn has_overloads(self) -> bool {
        matches!(self, Self::Rust | Self::Java | Self::Cpp | Self::CSharp)
    }

    /// Returns true if a bare name may mean a member of the class around it.
    pub(crate) fn implies_this(self) -> bool {
        matches!(self, Self::Java | Self::Cpp | Self::CSharp | Self::Ruby)
    }

    /// Returns true if a file of one language can use a file of the other.
    pub(crate) fn can_use(self, other: Self) -> bool {
        self == other
            || self.is_ecma() && other.is_ecma()
            || matches!((self, other), (Self::C | Self::Cpp, Self::C | Self::Cpp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new release of a grammar may rename kinds and fields, and no other test notices that.
    #[test]
    fn every_kind_and_field_of_the_tables_is_in_the_grammar() {
        let mut all_missing = Vec::new();
        for specs in specs() {
            let grammars: Vec<_> = specs.iter().map(|spec| (spec.parser)()).collect();
            let spec = &specs[0];
            let is_there =
                |kind: &str, named: bool| grammars.iter().any(|grammar| grammar.id_for_node_kind(kind, named) != 0);
            let kinds =
                spec.visits.iter().map(|(kind, _)| kind).chain(spec.branches).chain(spec.comments).chain(spec.leaves);
            let missing: Vec<_> = kinds.filter(|kind| !is_there(kind, true)).collect();
            all_missing.push(format!("{missing:?}"));
            // A shape may be for a keyword, such as `super`.
            let missing: Vec<_> = spec
                .shapes
                .iter()
                .map(|(kind, _)| kind)
                .filter(|kind| !is_there(kind, true) && !is_there(kind, false))
                .collect();
            all_missing.push(format!("{missing:?}"));
            let fields = spec.shapes.iter().flat_map(|(_, shape)| match *shape {
                SyntaxShape::Member(field, other)
                | SyntaxShape::Static(field, other)
                | SyntaxShape::Invoke(field, other)
                | SyntaxShape::Either(field, other) => vec![field, other],
                SyntaxShape::Call(field)
                | SyntaxShape::CallOr(field, _)
                | SyntaxShape::Of(field)
                | SyntaxShape::Pass(field)
                | SyntaxShape::Inner(field)
                | SyntaxShape::Item(field)
                | SyntaxShape::Apply(field, _) => vec![field],
                _ => Vec::new(),
            });
            let has = |field: &&str| {
                field.is_empty() || grammars.iter().any(|grammar| grammar.field_id_for_name(field).is_some())
            };
            let missing: Vec<_> = fields.filter(|field| !has(field)).collect();
            all_missing.push(format!("{missing:?}"));
        }
        all_missing.retain(|missing| missing != "[]");
        assert!(all_missing.is_empty(), "{all_missing:?}");
    }

    /// Lists the tables, each with all grammars that use it. C shares a table with C++, so it is left out unless C++ is
    /// built too.
    fn specs() -> Vec<Vec<LanguageSpec>> {
        #[allow(unused_mut, reason = "there are more of them where these are built")]
        let mut all = vec![
            vec![rust::SPEC],
            vec![python::SPEC],
            vec![ecma::JAVASCRIPT, ecma::TYPESCRIPT, ecma::TSX],
            vec![go::SPEC],
            vec![java::SPEC],
        ];
        #[cfg(feature = "code-all")]
        all.extend([vec![c::SPEC, c::CPP], vec![c_sharp::SPEC], vec![php::SPEC], vec![ruby::SPEC]]);
        all
    }
}
