//! Checks the answers of an index. They must not depend on earlier changes of the index.

use std::fmt::Write;
use std::sync::Arc;

use nudge_code_index::{CodeIndex, EdgeCertainty, NodeId, NodeLookup, TestHow, extract};
use proptest::prelude::*;

const FILES: &[(&str, &str)] = &[
    ("src/pkg/__init__.py", "from .core import f\n"),
    (
        "src/pkg/core.py",
        "def f():\n    return g()\ndef g(): pass\nclass C:\n    def m(self): return f()\n    def m(self): pass\n",
    ),
    ("src/pkg/util.py", "from pkg import f as other\ndef h(x):\n    other()\n    x.m()\n    x.f()\n"),
    ("tests/conftest.py", "import pytest\nfrom pkg.core import C\n@pytest.fixture\ndef c():\n    return C()\n"),
    (
        "tests/test_core.py",
        "from pkg import f\ndef test_f():\n    f()\ndef test_c(c):\n    c.m()\nclass TestAll:\n    def test_g(self): f()\n",
    ),
    ("tests/test_util.py", "from pkg.util import h\ndef test_h():\n    h(1)\n"),
];

fn index(files: &[(&str, &str)]) -> CodeIndex {
    let mut index = CodeIndex::new();
    for (path, text) in files {
        index.put_file(path, Arc::new(extract(path, text.as_bytes()).expect(path)));
    }
    index
}

fn one(index: &CodeIndex, id: &str) -> NodeId {
    match index.by_id(id) {
        NodeLookup::One(id) => id,
        other => panic!("{id}: {other:?}"),
    }
}

/// Writes all answers of an index as text.
fn all(index: &CodeIndex) -> String {
    let mut out = String::new();
    let name = |id: NodeId| index.id_of(id);
    for (path, facts) in index.files() {
        writeln!(out, "{path} {:?} {:?}", facts.language, index.list_imports(path)).expect("a string");
        writeln!(out, "  imported by {:?}", index.imported_by(path)).expect("a string");
        for site in index.list_calls(path) {
            writeln!(out, "  {}:{} {:?}", site.line, site.name, site.to.map(|(id, how)| (name(id), how)))
                .expect("a string");
        }
    }
    for found in index.nodes() {
        let callers = index.find_callers(found.id, 10, true);
        let from: Vec<_> = callers.edges.iter().map(|edge| (edge.from.map(name), edge.line, edge.how)).collect();
        let certain = index.find_callers(found.id, 10, false).edges.len();
        let called: Vec<_> = index.find_callees(found.id, false).iter().map(|edge| name(edge.to)).collect();
        let tests = index.find_tests(found.id, 10);
        let links: Vec<_> = tests.links.iter().map(|link| (name(link.test), link.how, link.depth)).collect();
        let (id, more) = (name(found.id), callers.unresolved_same_name);
        writeln!(out, "{id} {certain} of {from:?} {more} {called:?} {links:?} {:?}", tests.named).expect("a string");
    }
    out
}

#[test]
fn nodes_are_found_by_id_name_and_line() {
    let index = index(FILES);
    let g = one(&index, "node:src/pkg/core.py:g");
    assert_eq!(index.id_of(g), "node:src/pkg/core.py:g");
    assert_eq!(index.by_name("src/pkg/core.py", "g"), NodeLookup::One(g));
    assert_eq!(index.by_line("src/pkg/core.py", 3), Some(g));
    assert!(matches!(index.by_id("src/pkg/core.py:m"), NodeLookup::Ambiguous(two) if two.len() == 2));
    assert!(matches!(index.by_id("src/pkg/core.py:C.m#2"), NodeLookup::One(_)));
    assert_eq!(index.by_id("src/pkg/core.py:none"), NodeLookup::Unknown);
    assert_eq!(index.by_line("src/pkg/core.py", 99), None);
    assert_eq!(index.nodes_by_name("m").len(), 2);
}

#[test]
fn callers_say_how_and_what_is_not_known() {
    let index = index(FILES);
    let f = one(&index, "src/pkg/core.py:f");
    let callers = index.find_callers(f, 10, false);
    let lines: Vec<_> = callers.edges.iter().map(|edge| (&*edge.path, edge.line, edge.how)).collect();
    assert_eq!(
        lines,
        [
            ("src/pkg/core.py", 5, EdgeCertainty::Local),
            ("src/pkg/util.py", 3, EdgeCertainty::Imported),
            ("tests/test_core.py", 3, EdgeCertainty::Imported),
            ("tests/test_core.py", 7, EdgeCertainty::Imported),
        ]
    );
    assert_eq!(callers.unresolved_same_name, 1, "x.f()");
    let few = index.find_callers(f, 1, false);
    assert_eq!((few.edges.len(), few.omitted), (1, 3));
    let m = one(&index, "src/pkg/core.py:C.m#2");
    assert_eq!(index.find_callers(m, 10, false).edges[0].how, EdgeCertainty::Typed);
    let calls = index.find_callees(f, false);
    assert_eq!(calls.len(), 1);
    assert_eq!(index.id_of(calls[0].to), "node:src/pkg/core.py:g");
}

#[test]
fn tests_are_found_by_calls_fixtures_and_names() {
    let index = index(FILES);
    let tests = index.find_tests(one(&index, "src/pkg/core.py:g"), 10);
    let links: Vec<_> = tests.links.iter().map(|link| (index.id_of(link.test), link.how, link.depth)).collect();
    assert_eq!(
        links,
        [
            ("node:tests/test_core.py:test_f".to_owned(), TestHow::Reaches, 2),
            ("node:tests/test_core.py:TestAll.test_g".to_owned(), TestHow::Reaches, 2),
            ("node:tests/test_util.py:test_h".to_owned(), TestHow::Reaches, 3),
        ]
    );
    assert_eq!(tests.named.iter().map(|path| &**path).collect::<Vec<_>>(), ["tests/test_core.py"]);
    let class = index.find_tests(one(&index, "src/pkg/core.py:C"), 10);
    assert!(class.links.iter().any(|link| index.id_of(link.test).ends_with("test_c")), "through the fixture");
}

#[test]
fn tests_are_found_in_each_language() {
    for (path, text, id) in [
        ("src/lib.rs", "fn f() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() { super::f(); }\n}\n", "f"),
        ("src/lib.rs", "fn f() {}\n#[tokio::test]\nasync fn t() { f(); }\n", "f"),
        ("a.test.ts", "function f() {}\ndescribe('x', () => { it('does', () => { f(); }); });\n", "f"),
        ("a_test.go", "package a\nfunc f() {}\nfunc TestF(t *testing.T) { f() }\n", "f"),
        ("src/test/java/ATest.java", "class ATest {\n  void f() {}\n  @Test void t() { f(); }\n}\n", "f"),
        ("tests/test_a.py", "def f(): pass\ndef test_f(): f()\n", "f"),
    ] {
        let index = index(&[(path, text)]);
        let tests = index.find_tests(one(&index, &format!("{path}:{id}")), 5);
        assert_eq!(tests.links.len(), 1, "{path}: {tests:?}");
        assert_eq!(tests.links[0].how, TestHow::Calls, "{path}");
    }
}

#[test]
fn imports_lead_to_files_and_back() {
    let index = index(FILES);
    let imports = index.list_imports("src/pkg/util.py");
    assert_eq!(imports[0].path.as_deref(), Some("src/pkg/__init__.py"));
    let importers = index.imported_by("src/pkg/core.py");
    assert_eq!(importers.iter().map(|path| &**path).collect::<Vec<_>>(), ["src/pkg/__init__.py", "tests/conftest.py"]);
}

#[test]
fn an_import_is_of_the_module_that_it_names() {
    let files: &[(&str, &str)] = &[
        ("pkg/__init__.py", "from .core import f\nimport other as renamed\n"),
        ("pkg/core.py", "def f(): pass\n"),
        ("plain/core.py", "def f(): pass\n"),
        ("other.py", "x = 1\n"),
        (
            "main.py",
            "from pkg import core\nfrom pkg import f\nfrom pkg import renamed\nfrom pkg import core as c\nimport pkg.core\n\
             from plain import core\nfrom plain import missing\nimport outside\n",
        ),
        ("src/lib.rs", "mod a;\nuse a::f;\nuse a::b::S;\nuse std::fmt;\n"),
        ("src/a.rs", "pub mod b;\npub fn f() {}\n"),
        ("src/a/b.rs", "pub struct S;\n"),
    ];
    let index = index(files);
    let imports_of = |path: &str| index.list_imports(path).into_iter().map(|import| import.path).collect::<Vec<_>>();
    let some = |path: &str| Some(path.into());
    assert_eq!(
        imports_of("main.py"),
        [
            some("pkg/core.py"),
            some("pkg/__init__.py"),
            some("pkg/__init__.py"),
            some("pkg/core.py"),
            some("pkg/core.py"),
            some("plain/core.py"),
            None,
            None
        ]
    );
    assert_eq!(imports_of("src/lib.rs"), [some("src/a.rs"), some("src/a.rs"), some("src/a/b.rs"), None]);
}

#[test]
fn facts_of_a_node() {
    let text = "import x\n@deco\nasync def f(a, b: int = 1, *c, **d) -> int:\n    '''Does it.\n\n    More.'''\n    if a and b:\n        return 1\n";
    let facts = extract("a.py", text.as_bytes()).expect("a file");
    let view = facts.node_by_number(0).expect("f");
    assert_eq!(view.signature(), "async def f(a, b: int = 1, *c, **d) -> int");
    assert_eq!(view.doc(), Some("Does it.\n\nMore."));
    assert_eq!(view.params().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    let node = view.node();
    assert_eq!((node.span.line, node.span.end_line, node.complexity), (3, 8, 3));
    assert_eq!(usize::try_from(node.span.byte).ok(), text.find("@deco"), "with its decorators");
}

/// The words of comments and of messages are for search. A string without a space is a value, and a word with digits
/// may be part of a credential.
#[test]
fn prose_of_a_body() {
    for (path, text, wanted) in [
        (
            "a.py",
            "def f():\n    '''Does it.'''\n    # The server, again.\n    raise E('it has gone away', \"token\")\n",
            "the server again has gone away",
        ),
        (
            "a.rs",
            "/// Outside.\nfn f() { /* An inner one */ g(\"was not read, nor that x4y\"); }",
            "inner one was not read nor that",
        ),
        ("a.ts", "function f() { g(() => { /* deep down */ }); return `at ${a()} past noon`; }", "deep down past noon"),
        (
            "a.go",
            "package a\nfunc f() error {\n\t// Gone by now.\n\treturn errors.New(\"no such queue\")\n}\n",
            "gone now such queue",
        ),
        ("A.java", "class A { /** Not this. */ int f() { throw new E(\"out of stock\"); } }", "out stock"),
        (
            "a.c",
            "int f(void) {\n  /* caller frees it */\n  die(\"cannot map file\");\n}\n",
            "caller frees cannot map file",
        ),
    ] {
        let facts = extract(path, text.as_bytes()).expect("a file");
        let node = facts.nodes().find(|node| node.name() == "f").expect("f");
        assert_eq!(node.prose(), wanted, "{path}");
    }
    let words = (0..100).map(|number| format!("word{}", "x".repeat(number % 20))).collect::<Vec<_>>().join(" ");
    let facts =
        extract("a.py", format!("def f():\n    # {words}\n    # alpha beta\n    pass\n").as_bytes()).expect("a file");
    let prose = facts.node_by_number(0).expect("f").prose();
    assert!(prose.len() <= 400 && prose.starts_with("word wordx "), "{prose}");
}

#[test]
fn signatures_are_whole() {
    for (path, text, wanted) in [
        ("a.rs", "fn f() -> Option<u8> { None }", "fn f() -> Option<u8>"),
        ("a.py", "def f(a):\n    # Why.\n    # More.\n    return a\n", "def f(a)"),
        ("a.ts", "const f = (a: number): Array<number> => [a];", "f = (a: number): Array<number>"),
        ("a.ts", "export function g<T>(x: T): T {\n  return x;\n}", "function g<T>(x: T): T"),
        ("a.py", "class C(\n    A,\n): pass", "class C( A, )"),
        ("a.go", "package a\nfunc f(x int) (int, error) { return x, nil }", "func f(x int) (int, error)"),
    ] {
        let facts = extract(path, text.as_bytes()).expect(path);
        assert_eq!(facts.node_by_number(0).expect(text).signature(), wanted);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_history_gives_the_same(steps in prop::collection::vec((0..FILES.len(), any::<bool>(), any::<bool>()), 0..24)) {
        let mut lived = CodeIndex::new();
        let mut there = vec![false; FILES.len()];
        for (file, put, is_asked) in steps {
            // Answers that were cached before a change must not be returned after it.
            if is_asked {
                all(&lived);
            }
            let (path, text) = FILES[file];
            if put {
                lived.put_file(path, Arc::new(extract(path, text.as_bytes()).expect(path)));
            } else {
                prop_assert_eq!(lived.remove_file(path), there[file]);
            }
            there[file] = put;
        }
        let left: Vec<_> = FILES.iter().zip(&there).filter(|(_, there)| **there).map(|(file, _)| *file).collect();
        prop_assert_eq!(all(&lived), all(&index(&left)));
    }
}
