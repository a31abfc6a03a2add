//! Markdown as HTML that cannot load or run anything: the terms, the guides and the operator's own pages.
//!
//! HTML in the source is shown as text, and an image as its description. Values are filled in after parsing, so none of
//! them can be read as Markdown or HTML.

use std::borrow::Cow;
use std::collections::BTreeSet;

use pulldown_cmark::{Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use pulldown_cmark::{TextMergeStream, html};
use serde::Serialize;

use crate::pages::variables::Variables;

/// Ids of the layout. A heading with such an id gets a number.
const TAKEN_IDS: [&str; 3] = ["main", "nav-account", "nav-sign-up"];

/// A text as HTML, with its headings.
#[derive(Debug)]
pub(super) struct Rendered {
    pub(super) html: String,
    pub(super) headings: Vec<Heading>,
    /// The first paragraph, as text.
    pub(super) summary: String,
}

/// A heading, which links can lead to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Heading {
    pub(super) id: String,
    pub(super) title: String,
    /// Whether it is one of the highest of the text.
    pub(super) is_top: bool,
}

/// The HTML of a text. Its highest heading becomes a second-level one, since the page has its own first-level heading.
/// `link` is the target of a link; without one, only its text is shown.
pub(super) fn render(text: &str, variables: &Variables, link: impl Fn(&str) -> Option<String>) -> Rendered {
    convert(parse(text), variables, link)
}

/// The title of a text, which is its first heading, and the HTML of the rest. `None` without a heading.
pub(super) fn render_titled(
    text: &str,
    variables: &Variables,
    link: impl Fn(&str) -> Option<String>,
) -> Option<(String, Rendered)> {
    let mut events = parse(text);
    let start = events.iter().position(|event| matches!(event, Event::Start(Tag::Heading { .. })))?;
    let length = events[start..].iter().position(|event| matches!(event, Event::End(TagEnd::Heading(_))))?;
    let title: String = events.drain(start..=start + length).filter_map(text_of).collect();
    let title = variables.fill(title.trim()).into_owned();
    (!title.is_empty()).then(|| (title, convert(events, variables, link)))
}

/// A link that stays on this site, or leads to another one or to a mail program.
pub(super) fn plain_link(url: &str) -> Option<String> {
    let inside = (url.starts_with('/') && !url.starts_with("//")) || url.starts_with('#');
    let plain = inside || ["https://", "http://", "mailto:"].iter().any(|scheme| url.starts_with(scheme));
    plain.then(|| url.to_owned())
}

/// Escapes text for use in HTML content.
pub(super) fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

fn parse(text: &str) -> Vec<Event<'_>> {
    TextMergeStream::new(Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH)).collect()
}

fn text_of(event: Event<'_>) -> Option<String> {
    match event {
        Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) => Some(text.into_string()),
        _ => None,
    }
}

fn convert(events: Vec<Event<'_>>, variables: &Variables, link: impl Fn(&str) -> Option<String>) -> Rendered {
    let levels = events.iter().filter_map(|event| match event {
        Event::Start(Tag::Heading { level, .. }) => Some(*level as usize),
        _ => None,
    });
    let highest = levels.min().unwrap_or(1);
    let headings = headings(&events, variables, highest);
    let summary = summary(&events, variables);
    let mut ids = headings.iter().map(|heading| heading.id.clone());
    let mut runs = code_runs(&events).into_iter();
    let (mut links, mut closes_run) = (Vec::new(), false);
    let mut inert = Vec::with_capacity(events.len());
    for event in events {
        match event {
            Event::Html(html) | Event::InlineHtml(html) => inert.push(Event::Text(html)),
            Event::Text(text) => inert.push(Event::Text(filled(text, variables))),
            Event::Code(text) => inert.push(Event::Code(filled(text, variables))),
            Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => {}
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let target = link(&dest_url);
                links.push(target.is_some());
                let dest_url = target.map(CowStr::from);
                inert.extend(dest_url.map(|dest_url| Event::Start(Tag::Link { link_type, dest_url, title, id })));
            }
            Event::End(TagEnd::Link) => {
                if links.pop() == Some(true) {
                    inert.push(event);
                }
            }
            Event::Start(Tag::Heading { level, .. }) => {
                let (level, id) = (below_the_first(level, highest), ids.next().map(CowStr::from));
                inert.push(Event::Start(Tag::Heading { level, id, classes: Vec::new(), attrs: Vec::new() }));
            }
            Event::End(TagEnd::Heading(level)) => {
                inert.push(Event::End(TagEnd::Heading(below_the_first(level, highest))));
            }
            // Tables and code may be wider than the screen, so they scroll on their own, with the keyboard too.
            Event::Start(Tag::Table(columns)) => {
                inert.push(markup("<div class=\"wide-table\" role=\"group\" aria-label=\"Table\" tabindex=\"0\">"));
                // Column alignment would need inline styles, which the content security policy forbids.
                inert.push(Event::Start(Tag::Table(vec![Alignment::None; columns.len()])));
            }
            Event::End(TagEnd::Table) => inert.extend([event, markup("</div>\n")]),
            Event::Start(Tag::CodeBlock(kind)) => {
                let run = runs.next().unwrap_or_default();
                closes_run = run.ends;
                inert.extend(run.begins.then(|| markup("<div class=\"code-choices\">\n")));
                inert.push(Event::Html(code_start(&kind).into()));
            }
            Event::End(TagEnd::CodeBlock) => {
                inert.push(markup("</code></pre></div>\n"));
                inert.extend(closes_run.then(|| markup("</div>\n")));
            }
            event => inert.push(event),
        }
    }
    let mut html = String::new();
    html::push_html(&mut html, inert.into_iter());
    Rendered { html, headings, summary }
}

const fn markup(html: &'static str) -> Event<'static> {
    Event::Html(CowStr::Borrowed(html))
}

fn filled<'e>(text: CowStr<'e>, variables: &Variables) -> CowStr<'e> {
    let changed = match variables.fill(&text) {
        Cow::Owned(filled) => Some(filled),
        Cow::Borrowed(_) => None,
    };
    changed.map_or(text, CowStr::from)
}

fn below_the_first(level: HeadingLevel, highest: usize) -> HeadingLevel {
    HeadingLevel::try_from(level as usize + 2 - highest).unwrap_or(HeadingLevel::H6)
}

/// The headings, with ids as GitHub makes them, so that the same links work in the repository.
fn headings(events: &[Event<'_>], variables: &Variables, highest: usize) -> Vec<Heading> {
    let mut ids: BTreeSet<String> = TAKEN_IDS.map(str::to_owned).into();
    let (mut found, mut current) = (Vec::new(), None::<(usize, String)>);
    for event in events {
        match event {
            Event::Start(Tag::Heading { level, .. }) => current = Some((*level as usize, String::new())),
            Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) => {
                if let Some((_, title)) = &mut current {
                    title.push_str(text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let (level, title) = current.take().unwrap_or_default();
                let id = free_id(&title, &ids);
                ids.insert(id.clone());
                found.push(Heading { id, title: variables.fill(&title).into_owned(), is_top: level == highest });
            }
            _ => {}
        }
    }
    found
}

/// The first paragraph, as text on one line.
fn summary(events: &[Event<'_>], variables: &Variables) -> String {
    let after = events.iter().skip_while(|event| !matches!(event, Event::Start(Tag::Paragraph)));
    let within = after.take_while(|event| !matches!(event, Event::End(TagEnd::Paragraph)));
    let words = within.map(|event| match event {
        Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) => &**text,
        Event::SoftBreak | Event::HardBreak => " ",
        _ => "",
    });
    let text: String = words.collect();
    variables.fill(&text).into_owned()
}

/// Lower case, without punctuation, with dashes for spaces. A repeated one gets a number.
fn free_id(title: &str, taken: &BTreeSet<String>) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let id: String = title.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect();
    let id = if id.is_empty() { "section".to_owned() } else { id };
    let mut free = id.clone();
    let mut number = 1;
    while taken.contains(&free) {
        free = format!("{id}-{number}");
        number += 1;
    }
    free
}

/// Where a code block is in a run of code blocks with nothing between them: the same in several languages.
#[derive(Debug, Default, Clone, Copy)]
struct CodeRun {
    begins: bool,
    ends: bool,
}

fn code_runs(events: &[Event<'_>]) -> Vec<CodeRun> {
    let mut runs: Vec<CodeRun> = Vec::new();
    let is_end = |place: usize| matches!(events.get(place), Some(Event::End(TagEnd::CodeBlock)));
    let is_start = |place: usize| matches!(events.get(place), Some(Event::Start(Tag::CodeBlock(_))));
    let mut start = 0;
    for place in 0..events.len() {
        if is_start(place) {
            start = place;
        } else if is_end(place) {
            let after = is_start(place + 1);
            let before = start > 0 && is_end(start - 1);
            runs.push(CodeRun { begins: after && !before, ends: before && !after });
        }
    }
    runs
}

/// The start of a code block: a head that names its language, and the code.
fn code_start(kind: &CodeBlockKind<'_>) -> String {
    let language = match kind {
        CodeBlockKind::Fenced(info) => info.split([' ', ',']).next().unwrap_or_default(),
        CodeBlockKind::Indented => "",
    };
    let name = language_name(language);
    format!(
        "<div class=\"snippet\" data-language=\"{name}\"><div class=\"snippet-head\"><span>{name}</span></div>\
         <pre tabindex=\"0\" role=\"group\" aria-label=\"{name}\"><code>"
    )
}

/// A language as people write it. Nothing else of the source gets into the markup.
fn language_name(language: &str) -> &'static str {
    match language {
        "sh" | "bash" | "shell" | "console" => "Shell",
        "py" | "python" => "Python",
        "ts" | "typescript" => "TypeScript",
        "js" | "javascript" => "JavaScript",
        "go" => "Go",
        "rust" | "rs" => "Rust",
        "java" => "Java",
        "ruby" => "Ruby",
        "php" => "PHP",
        "json" => "JSON",
        "http" => "HTTP",
        "toml" => "TOML",
        "yaml" => "YAML",
        _ => "Code",
    }
}

#[cfg(test)]
mod tests;
