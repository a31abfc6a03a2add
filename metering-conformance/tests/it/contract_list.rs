//! Checks that `store_conformance!` generates a test for every contract of the conformance suite.

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

/// `module::contract` for every public async function in those modules.
fn contracts(suite: &str) -> BTreeSet<String> {
    let mut contracts = BTreeSet::new();
    for subject in subjects(suite) {
        let text = read(&source(&format!("{subject}.rs")));
        let names = text.lines().filter_map(|line| Some(line.strip_prefix("pub async fn ")?.split_once('(')?.0));
        contracts.extend(names.map(|name| format!("{subject}::{name}")));
    }
    contracts
}

/// The entries of the macros' lists, in order.
fn listed(macros: &str) -> Vec<&str> {
    let lists = macros.split("conformance_tests! { $fresh;").skip(1);
    let lists = lists.map(|list| list.split_once('}').expect("each list has an end").0);
    let entries = lists.flat_map(str::lines).filter_map(|line| line.trim().strip_suffix(','));
    entries.map(|entry| entry.strip_suffix(": verified").unwrap_or(entry)).collect()
}

#[test]
fn every_contract_has_one_test() {
    let parts = modules(&source("contracts")).into_iter().map(|(path, _)| path);
    let lists = [source("contracts.rs")].into_iter().chain(parts);
    let (suite, macros) = (read(&source("lib.rs")), lists.map(|list| read(&list)).collect::<String>());
    let (contracts, listed) = (contracts(&suite), listed(&macros));
    assert!(contracts.len() >= 180, "found only {} contracts; does this test read the right files?", contracts.len());
    let forgotten: Vec<_> = contracts.iter().filter(|contract| !listed.contains(&contract.as_str())).collect();
    assert!(forgotten.is_empty(), "not in the list of `store_conformance!`: {forgotten:#?}");
    assert_eq!(listed.len(), contracts.len(), "no entry is listed twice or without a contract");
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
    read(path).lines().any(|line| line.contains("pub async fn") && line.contains("(store: Arc<dyn "))
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
