//! The documents name files, headings and recipes; those must exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

/// Folders that hold no documents of ours.
const SKIPPED: [&str; 4] = ["target", "node_modules", "vendor", ".git"];

/// What one document says that can be checked.
#[derive(Debug, Default)]
struct Document {
    anchors: BTreeSet<String>,
    links: Vec<String>,
    code_spans: Vec<String>,
}

impl Document {
    fn read(text: &str) -> Self {
        let (mut document, mut heading) = (Self::default(), None::<String>);
        for event in Parser::new(text) {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    document.add_anchor(&heading.take().unwrap_or_default());
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document.links.push(dest_url.into_string());
                }
                Event::Text(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                Event::Code(code) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&code);
                    }
                    document.code_spans.push(code.into_string());
                }
                _ => {}
            }
        }
        document
    }

    /// A heading's anchor, as GitHub makes it: lower case, without punctuation, with dashes for spaces. A repeated one
    /// gets a number.
    fn add_anchor(&mut self, heading: &str) {
        let heading = heading.to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone()).chain(numbered).find(|anchor| !self.anchors.contains(anchor));
        self.anchors.extend(free);
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn documents(folder: &Path, found: &mut BTreeMap<PathBuf, Document>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !path.is_symlink() {
            if !SKIPPED.contains(&name.as_str()) {
                documents(&path, found);
            }
        } else if name.ends_with(".md") {
            let text = fs::read_to_string(&path).unwrap();
            found.insert(path, Document::read(&text));
        }
    }
}

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
    if !target.exists() {
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

fn recipes(root: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(root.join("justfile")).unwrap();
    let heads = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()) && line.contains(':'));
    heads.map(|line| line.split([' ', ':']).next().unwrap().to_owned()).collect()
}

#[test]
fn links_files_and_recipes_in_documents_exist() {
    let root = root();
    let mut all = BTreeMap::new();
    documents(&root, &mut all);
    assert!(all.len() > 30, "only {} documents were found", all.len());
    let folders = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap()).filter(|entry| entry.path().is_dir());
    let top: BTreeSet<String> = folders.map(|folder| folder.file_name().into_string().unwrap()).collect();
    let recipes = recipes(&root);
    assert!(recipes.contains("chaos"), "{recipes:?}");
    let mut wrong = Vec::new();
    for (file, document) in &all {
        let name = file.strip_prefix(&root).unwrap().display();
        wrong.extend(
            document.links.iter().filter_map(|link| broken(&all, file, link)).map(|why| format!("{name} {why}")),
        );
        // What the changelog says of earlier versions was true then.
        if file.ends_with("CHANGELOG.md") {
            continue;
        }
        for code in &document.code_spans {
            let is_there = || root.join(code).exists() || file.parent().unwrap().join(code).exists();
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
    let file = root().join("docs/README.md");
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
