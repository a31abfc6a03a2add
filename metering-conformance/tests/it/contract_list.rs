//! Checks that the build script finds every contract of the suite: it looks in the public modules.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn source(name: &str) -> PathBuf {
    sources().join(name)
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The subjects of the suite, which are its public modules.
fn subjects(suite: &str) -> BTreeSet<&str> {
    suite.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect()
}

/// The files and folders in a folder: their paths and module names.
fn modules(folder: &Path) -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_stem().and_then(|stem| stem.to_str()).expect("a file has a name").to_owned();
    paths.map(|path| (path.clone(), name(&path))).collect()
}

/// Checks that the files below a module are declared, and have no contracts: those must be in public modules.
fn parts_have_no_contracts(folder: &Path) {
    let parent = read(&folder.with_extension("rs"));
    for (path, part) in modules(folder) {
        // Parts of parts are private to them.
        let declared = declares(&parent, &part) || parent.contains(&format!("pub(super) mod {part};"));
        assert!(declared, "{part} is not declared by {}", folder.display());
        if path.is_dir() {
            parts_have_no_contracts(&path);
        } else {
            assert!(!has_contracts(&path), "{}: contracts must be in public modules", path.display());
        }
    }
}

fn declares(text: &str, module: &str) -> bool {
    let (public, private) = (format!("pub mod {module};"), format!("mod {module};"));
    text.lines().any(|line| line == public || line == private)
}

fn has_contracts(path: &Path) -> bool {
    let takes_a_store = |line: &str| line.contains("(store: Arc<dyn ") || line.contains("(store: Verified<dyn ");
    read(path).lines().any(|line| line.contains("pub async fn") && takes_a_store(line))
}

#[test]
fn every_file_of_the_suite_is_part_of_it() {
    let suite = read(&source("lib.rs"));
    for (path, module) in modules(&sources()).into_iter().filter(|(_, module)| module != "lib") {
        assert!(declares(&suite, &module), "module {module} is not declared");
        if path.is_dir() {
            parts_have_no_contracts(&path);
        } else {
            let is_subject = subjects(&suite).contains(module.as_str());
            assert_eq!(has_contracts(&path), is_subject, "{module}: contracts must be in public modules");
        }
    }
}
