//! Files of a crate do not import each other in a circle, so that a reader can start at the bottom. A parent and its
//! children count as one, so imports between them are fine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::modules::Modules;

type Dependencies = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

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

#[test]
fn circles_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let src = folder.path();
    let write = |file: &str, text: &str| {
        std::fs::create_dir_all(src.join(file).parent().unwrap()).unwrap();
        std::fs::write(src.join(file), text).unwrap();
    };
    write("lib.rs", "mod a; mod b; mod room; mod alone; pub use a::A;");
    write("a.rs", "use crate::room::Inner; pub struct A(Inner);");
    write("b.rs", "pub fn b() -> crate::A { loop {} } #[cfg(test)] mod tests { use crate::alone::Alone; }");
    write("alone.rs", "use crate::b; pub struct Alone; fn f() { b::b(); }");
    write("room.rs", "mod inner; pub(crate) use inner::Inner; pub fn g(_: Inner) {}");
    write("room/inner.rs", "use super::g; pub struct Inner; fn f() { println!(\"{:?}\", crate::b::b()); }");
    let all = Modules::read(&src.join("lib.rs")).dependencies();
    let names = |files: &BTreeSet<PathBuf>| -> Vec<String> {
        files.iter().map(|file| file.strip_prefix(src).unwrap().display().to_string()).collect()
    };
    assert_eq!(names(&all[&src.join("a.rs")]), ["room/inner.rs"], "the re-export is followed");
    assert_eq!(names(&all[&src.join("b.rs")]), ["a.rs"], "tests do not count");
    assert_eq!(names(&all[&src.join("room/inner.rs")]), ["b.rs"], "the parent does not count");
    let circles = circles(&all);
    assert_eq!(circles.len(), 1, "{circles:?}");
    assert_eq!(circles[0].len(), 3, "{circles:?}");
}
