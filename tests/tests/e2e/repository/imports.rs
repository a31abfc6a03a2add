//! Files of a crate do not import each other in a circle, so that a reader can start at the bottom. A parent that uses
//! its child while the child uses the parent's own items is such a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::modules::{Dependencies, Modules};

/// Groups of files that can each be reached from each other.
fn circles(all: &Dependencies) -> Vec<BTreeSet<&Path>> {
    let reach: BTreeMap<&Path, BTreeSet<&Path>> =
        all.keys().map(|file| (file.as_path(), reachable(all, file))).collect();
    let mut circles = Vec::<BTreeSet<&Path>>::new();
    for (file, there) in &reach {
        let circle: BTreeSet<&Path> = there.iter().copied().filter(|other| reach[other].contains(file)).collect();
        if !circle.is_empty() && !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles
}

fn reachable<'d>(all: &'d Dependencies, file: &Path) -> BTreeSet<&'d Path> {
    let (mut found, mut next) = (BTreeSet::new(), vec![file]);
    while let Some(file) = next.pop() {
        for other in &all[file] {
            if found.insert(other.as_path()) {
                next.push(other);
            }
        }
    }
    found
}

/// The crates of the workspace that have a `src` folder, and the roots in it.
fn roots() -> Vec<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folders = std::fs::read_dir(workspace).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let roots = folders.flat_map(|src| [src.join("lib.rs"), src.join("main.rs")]);
    roots.filter(|root| root.exists()).collect()
}

#[test]
fn files_do_not_import_each_other_in_a_circle() {
    let roots = roots();
    assert!(roots.len() > 8, "{roots:?}");
    let mut found = String::new();
    for root in roots {
        let all = Modules::read(&root).dependencies();
        let src = root.parent().unwrap().parent().unwrap().parent().unwrap();
        for circle in circles(&all) {
            found += &format!("a circle of {} files:\n", circle.len());
            for file in &circle {
                let others = all[*file].iter().filter(|other| circle.contains(other.as_path()));
                let others: Vec<_> =
                    others.map(|other| other.strip_prefix(src).unwrap().display().to_string()).collect();
                found +=
                    &format!("  {} imports from {}\n", file.strip_prefix(src).unwrap().display(), others.join(", "));
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}

/// Writes a crate of `files`, and returns what each of them depends on: `"a.rs: b.rs c.rs"`.
fn read(files: &[(&str, &str)]) -> (Vec<String>, Vec<Vec<String>>) {
    let folder = tempfile::tempdir().unwrap();
    let src = folder.path();
    for (file, text) in files {
        std::fs::create_dir_all(src.join(file).parent().unwrap()).unwrap();
        std::fs::write(src.join(file), text).unwrap();
    }
    let all = Modules::read(&src.join("lib.rs")).dependencies();
    let name = |file: &Path| file.strip_prefix(src).unwrap().display().to_string();
    let mut lines = Vec::new();
    for (file, others) in all.iter().filter(|(_, others)| !others.is_empty()) {
        let others: Vec<_> = others.iter().map(|other| name(other)).collect();
        lines.push(format!("{}: {}", name(file), others.join(" ")));
    }
    let circles = circles(&all).into_iter().map(|circle| circle.into_iter().map(name).collect()).collect();
    (lines, circles)
}

#[track_caller]
fn check_dependencies(files: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(read(files).0, expected);
}

#[track_caller]
fn check_circles(files: &[(&str, &str)], expected: &[&[&str]]) {
    assert_eq!(read(files).1, expected);
}

#[test]
fn a_circle_may_pass_through_re_exports_macros_and_rooms() {
    let files = [
        ("lib.rs", "mod a; mod b; mod room; mod alone; pub use a::A;"),
        ("a.rs", "use crate::room::Inner; pub struct A(Inner);"),
        ("b.rs", "pub fn b() -> crate::A { loop {} } #[cfg(test)] mod tests { use crate::alone::Alone; }"),
        ("alone.rs", "use crate::b; pub struct Alone; fn f() { b::b(); }"),
        ("room.rs", "mod inner; pub(crate) use inner::Inner; pub fn g(_: Inner) {}"),
        ("room/inner.rs", "pub struct Inner; fn f() { println!(\"{:?}\", crate::b::b()); }"),
    ];
    check_dependencies(
        &files,
        &["a.rs: room/inner.rs", "alone.rs: b.rs", "b.rs: a.rs", "room/inner.rs: b.rs", "room.rs: room/inner.rs"],
    );
    check_circles(&files, &[&["a.rs", "b.rs", "room/inner.rs"]]);
}

#[test]
fn a_parent_and_a_child_that_use_each_other_are_a_circle() {
    let child = ("p/c.rs", "use super::P; pub struct C(P);");
    let declares = ("p.rs", "mod c; pub struct P;");
    let re_exports = ("p.rs", "mod c; pub use c::C; pub(crate) use c::*; pub struct P;");
    let uses = ("p.rs", "mod c; pub use c::C; pub struct P(Option<Box<C>>);");
    let imports = ("p.rs", "mod c; use c::C; pub struct P(Option<Box<C>>);");
    let names = ("p.rs", "mod c; pub struct P; fn f(_: c::C) {}");
    let root = ("lib.rs", "mod p;");
    for parent in [declares, re_exports] {
        check_circles(&[root, parent, child], &[]);
    }
    for parent in [uses, imports, names] {
        check_circles(&[root, parent, child], &[&["p/c.rs", "p.rs"]]);
    }
}

#[test]
fn a_circle_may_come_back_through_the_parent() {
    let parent = |text| ("p.rs", text);
    let files = |parent| {
        let a = ("p/a.rs", "use super::{B, LIMIT}; pub struct A(B, [u8; LIMIT]);");
        [("lib.rs", "mod p;"), parent, a, ("p/b.rs", "pub struct B;")]
    };
    let own = files(parent("mod a; mod b; pub(crate) use b::B; pub const LIMIT: usize = 1; fn f(_: B) {}"));
    check_dependencies(&own, &["p/a.rs: p/b.rs p.rs", "p.rs: p/b.rs"]);
    check_circles(&own, &[]);
    let back = files(parent("mod a; mod b; use b::B; pub const LIMIT: usize = size_of::<a::A>();"));
    check_circles(&back, &[&["p/a.rs", "p.rs"]]);
}

#[test]
fn a_grandchild_counts_like_a_child() {
    check_circles(
        &[
            ("lib.rs", "mod p; pub struct Root(p::c::C);"),
            ("p.rs", "pub mod c;"),
            ("p/c.rs", "pub struct C(Option<Box<super::super::Root>>);"),
        ],
        &[&["lib.rs", "p/c.rs"]],
    );
}

#[test]
fn a_dependency_is_the_file_that_defines_an_item() {
    let root = ("lib.rs", "mod a; mod b; mod c; pub use a::*; pub use b as other; pub use std::fmt;");
    let a = ("a.rs", "pub struct A; pub fn c() {} macro_rules! m { () => {} } pub(crate) use m;");
    let b = ("b.rs", "pub struct B; pub enum E { V }");
    let by: &[(&str, &[&str])] = &[
        ("use crate::A;", &["c.rs: a.rs"]),
        ("use crate::*; fn f(_: A) {}", &["c.rs: a.rs lib.rs"]),
        ("fn f(_: crate::other::B) {}", &["c.rs: b.rs"]),
        ("use crate::other; fn f(_: other::B) {}", &["c.rs: b.rs"]),
        ("use crate::b::E; use E::V;", &["c.rs: b.rs"]),
        ("use crate::b::E::*;", &["c.rs: b.rs"]),
        ("use crate::a::m; m!();", &["c.rs: a.rs"]),
        ("#[serde(with = \"x\", value = crate::other::B)] struct S;", &["c.rs: b.rs"]),
        ("fn f() { let _ = vec![super::b::B]; }", &["c.rs: b.rs"]),
        ("mod inner { fn f(_: super::super::A) {} }", &["c.rs: a.rs"]),
        ("use crate::b;", &[]),
        ("use crate::fmt;", &[]),
        ("pub(in crate::b) struct S;", &[]),
        ("#[cfg(test)] fn f(_: crate::A) {} impl S { #[cfg(test)] fn f(_: crate::A) {} }", &[]),
        ("struct A; fn f(_: A) {}", &[]),
    ];
    for (text, expected) in by {
        println!("{text}");
        check_dependencies(&[root, a, b, ("c.rs", text)], expected);
    }
}

#[test]
fn a_function_may_have_the_name_of_a_module() {
    let a = ("a.rs", "pub fn f() {} pub fn a() {} struct S(u8); impl S { fn g(self) -> u8 { self.0 } }");
    let b = ("b.rs", "use crate::a; fn g() { a(); } fn h() { a::f(); }");
    check_dependencies(&[("lib.rs", "mod a; mod b; fn a() {}"), a, b], &["b.rs: a.rs lib.rs"]);
    let b = ("b.rs", "fn g() { crate::a(); }");
    check_dependencies(&[("lib.rs", "mod a; mod b; pub use a::a;"), a, b], &["b.rs: a.rs"]);
}
