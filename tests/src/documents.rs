//! The documents of the repository: their links, the names in them, and their code. Each crate's tests check what it
//! knows: commands, configurations, links, codes.

pub mod shell;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

use shell::Script;

/// Folders without documents of this project.
const SKIPPED: [&str; 4] = ["target", "node_modules", "vendor", ".git"];

/// The checkable parts of one document.
#[derive(Debug, Default)]
pub struct Document {
    /// The anchors of its headings.
    pub anchors: BTreeSet<String>,
    /// Where its links and images lead.
    pub links: Vec<String>,
    /// Its code in running text.
    pub code_spans: Vec<CodeSpan>,
    /// Its code blocks.
    pub code_blocks: Vec<CodeBlock>,
}

/// Code in running text.
#[derive(Debug)]
pub struct CodeSpan {
    /// The text right before it.
    pub before: String,
    /// The code.
    pub code: String,
}

/// A block of code.
#[derive(Debug, Default)]
pub struct CodeBlock {
    /// Its language, or nothing.
    pub language: String,
    /// The code.
    pub text: String,
}

impl CodeBlock {
    /// The commands that it shows, if it shows any.
    #[must_use]
    pub fn script(&self) -> Option<Script> {
        let is_shell = matches!(self.language.as_str(), "sh" | "console");
        (is_shell || shell::is_session(&self.text)).then(|| Script::read(&self.text))
    }
}

impl Document {
    /// Reads Markdown.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let (mut document, mut heading, mut before) = (Self::default(), None::<String>, String::new());
        let mut block = None::<CodeBlock>;
        for event in Parser::new(text) {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    document.add_anchor(&heading.take().unwrap_or_default());
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let language = match kind {
                        CodeBlockKind::Fenced(language) => language.into_string(),
                        CodeBlockKind::Indented => String::new(),
                    };
                    block = Some(CodeBlock { language, text: String::new() });
                }
                Event::End(TagEnd::CodeBlock) => document.code_blocks.extend(block.take()),
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document.links.push(dest_url.into_string());
                }
                Event::Text(text) => {
                    if let Some(written) = heading.as_mut().or(block.as_mut().map(|block| &mut block.text)) {
                        written.push_str(&text);
                    }
                    before = text.into_string();
                }
                Event::SoftBreak => before.push(' '),
                Event::Code(code) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&code);
                    }
                    let before = std::mem::take(&mut before);
                    document.code_spans.push(CodeSpan { before, code: code.into_string() });
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

/// The folder of the repository.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in a folder of the repository")
}

/// All documents, by their path in the repository.
#[must_use]
pub fn documents() -> BTreeMap<PathBuf, Document> {
    let mut found = BTreeMap::new();
    add(root(), &mut found);
    found
}

fn add(folder: &Path, found: &mut BTreeMap<PathBuf, Document>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !path.is_symlink() {
            if !SKIPPED.contains(&name.as_str()) {
                add(&path, found);
            }
        } else if name.ends_with(".md") {
            let text = fs::read_to_string(&path).expect("the document can be read");
            let path = path.strip_prefix(root()).expect("it is in the repository").to_owned();
            found.insert(path, Document::read(&text));
        }
    }
}
