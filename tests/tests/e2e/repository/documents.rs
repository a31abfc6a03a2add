//! The documents name files, headings and recipes; those must exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use metering_tests::documents::{Document, documents, root};

/// Without `.` and `..`, so that paths to the same file are equal.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut normal, part| {
        match part {
            std::path::Component::ParentDir => {
                let _ = normal.pop();
            }
            std::path::Component::CurDir => {}
            part => normal.push(part),
        }
        normal
    })
}

/// Why a link leads nowhere.
fn broken(all: &BTreeMap<PathBuf, Document>, file: &Path, link: &str) -> Option<String> {
    // Guides link to pages of the site (`/docs`): the tests of the pages check those.
    if link.contains("://") || link.starts_with("mailto:") || link.starts_with('/') {
        return None;
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let target = if path.is_empty() { file.to_owned() } else { normal(&file.parent().unwrap().join(path)) };
    if !root().join(&target).exists() {
        return Some(format!("links to {link}, which does not exist"));
    }
    let document = all.get(&target)?;
    let missing = anchor.filter(|anchor| !document.anchors.contains(*anchor))?;
    Some(format!("links to {link}, but there is no heading #{missing}"))
}

/// Whether a code span names a file or a folder of this repository.
fn names_a_file(code: &str, top: &BTreeSet<String>) -> bool {
    let plain = code.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c)) && !code.contains("...");
    let Some((first, rest)) = code.split_once('/') else { return false };
    plain && !rest.is_empty() && top.contains(first)
}

fn recipes() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("justfile")).unwrap();
    let heads = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()) && line.contains(':'));
    heads.map(|line| line.split([' ', ':']).next().unwrap().to_owned()).collect()
}

#[test]
fn links_files_and_recipes_in_documents_exist() {
    let all = documents();
    assert!(all.len() > 30, "only {} documents were found", all.len());
    let folders = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap()).filter(|entry| entry.path().is_dir());
    let top: BTreeSet<String> = folders.map(|folder| folder.file_name().into_string().unwrap()).collect();
    let recipes = recipes();
    assert!(recipes.contains("chaos"), "{recipes:?}");
    let mut wrong = Vec::new();
    for (file, document) in &all {
        let name = file.display();
        wrong.extend(
            document.links.iter().filter_map(|link| broken(&all, file, link)).map(|why| format!("{name} {why}")),
        );
        // The changelog's entries on earlier versions were true then.
        if file.ends_with("CHANGELOG.md") {
            continue;
        }
        for code in document.code_spans.iter().map(|span| &span.code) {
            let is_there =
                || [Path::new(""), file.parent().unwrap()].iter().any(|folder| root().join(folder).join(code).exists());
            if names_a_file(code, &top) && !is_there() {
                wrong.push(format!("{name} names `{code}`, which does not exist"));
            }
            let recipe = code.strip_prefix("just ").and_then(|rest| rest.split(' ').next());
            if let Some(recipe) = recipe.filter(|recipe| !recipe.starts_with('-') && !recipes.contains(*recipe)) {
                wrong.push(format!("{name} names the recipe `just {recipe}`, which does not exist"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn missing_targets_are_found() {
    let file = PathBuf::from("docs/README.md");
    let all = BTreeMap::from([(file.clone(), Document::read("# One `two`: three\n\n## Again\n\n## Again\n"))]);
    assert_eq!(all[&file].anchors, BTreeSet::from(["one-two-three", "again", "again-1"].map(str::to_owned)));
    for link in ["#one-two-three", "#again-1", "https://example.com/x#y", "/docs#x", "../README.md"] {
        assert_eq!(broken(&all, &file, link), None, "{link}");
    }
    for link in ["#two", "none.md", "../docs/none.md#again", "README.md#two"] {
        assert!(broken(&all, &file, link).is_some(), "{link}");
    }
    let top = BTreeSet::from(["tests", "docs", "metering-core"].map(str::to_owned));
    for code in ["tests/tests/e2e/none.rs", "docs/none.md", "metering-core/src", "tests/none"] {
        assert!(names_a_file(code, &top), "{code}");
    }
    for code in ["/v1/export", "application/json", "tests/*.rs", "docs", "cargo test"] {
        assert!(!names_a_file(code, &top), "{code}");
    }
}
