use super::*;

fn compact(source: &str) -> String {
    Script::read(source).unwrap_or_else(|error| panic!("{source}: {error:?}")).compact()
}

#[test]
fn comments_and_indentation_go_and_texts_stay() {
    // source, compact
    let table = [
        ("// words\n  a();\n\n\tb(); // more\n", "a();\nb();"),
        ("a /* one */ + /* two\n lines */ b", "a +\nb"),
        ("a(\"//  no comment\", '/* nor  this */');", "a(\"//  no comment\", '/* nor  this */');"),
        (
            "a = `one\n    two // three ${ b( `  x  ` )  } /* four */`;",
            "a = `one\n    two // three ${ b( `  x  ` ) } /* four */`;",
        ),
        ("a = `}${{ b: \"`\" }.b}  //`; // words", "a = `}${{ b: \"`\" }.b}  //`;"),
        ("a.replace(/[/\"']  \\/\"/g, b); // words", "a.replace(/[/\"']  \\/\"/g, b);"),
        ("if (a) /\"  /.test(b); // words", "if (a) /\"  /.test(b);"),
        ("a = (b + c) / 2; d = e[0] / f; // words / more", "a = (b + c) / 2; d = e[0] / f;"),
        ("a = b++ / 2; // words", "a = b++ / 2;"),
        ("a = 'it\\'s'; // words", "a = 'it\\'s';"),
        ("a = \"é …\";   // ü", "a = \"é …\";"),
    ];
    for (source, expected) in table {
        assert_eq!(compact(source), expected, "{source}");
    }
}

#[test]
fn what_has_no_end_is_an_error() {
    for source in ["a(", "a)", "a = [1}", "\"a", "'a\n'", "`a", "`${a", "/* a", "a = /b\n", "a(b]"] {
        assert!(Script::read(source).is_err(), "{source}");
    }
}

#[test]
fn await_is_for_functions() {
    let inside = [
        "async function a() { await b; }",
        "async function a() { if (b) { for await (const c of d) e(c); } }",
        "const a = async (b) => await c;",
        "const a = { async b() { await c; } };",
        "class A { async b() { try { await c; } catch (d) { await e; } } }",
        "a(async () => (await b).c);",
        "a.await(); // await",
    ];
    for source in inside {
        assert!(Script::read(source).is_ok(), "{source}");
    }
    let outside = ["await a;", "if (a) { await b; }", "for await (const a of b) c();", "const a = () => 1; await b;"];
    for source in outside {
        assert_eq!(Script::read(source).unwrap_err().problem, "await is outside of a function", "{source}");
    }
}

#[test]
fn imports_and_exports_are_found_in_code_only() {
    let source = "import \"a\"; // import\nexport const b = `export ${import(\"c\")}`; d.export(\"import\");";
    let script = Script::read(source).unwrap();
    let found: Vec<_> = script.keywords().iter().map(|word| (&source[word.at..word.at + 8], word.is_outside)).collect();
    assert_eq!(found, [("import \"", true), ("export c", true), ("import(\"", false)]);
    assert_eq!(script.end_of_statement(0), Some(11));
}
