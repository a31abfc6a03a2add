//! The terms of use as inert HTML: the operator's text, or a short built-in one.

use std::path::Path;

use pulldown_cmark::{Alignment, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// The built-in text.
const DEFAULT: &str = include_str!("../../assets/pages/terms.md");

/// Reads the operator's text. `.md` and `.markdown` files are Markdown; all others are plain text.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn read(file: &Path) -> std::io::Result<String> {
    let text = std::fs::read_to_string(file)?;
    let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let markdown = matches!(extension.to_ascii_lowercase().as_str(), "md" | "markdown");
    Ok(if markdown { markdown_to_html(&text) } else { plain_to_html(&text) })
}

/// The built-in text, with the service's name.
pub(super) fn default(brand: &str) -> String {
    markdown_to_html(&DEFAULT.replace("{brand}", brand))
}

/// Empty lines separate paragraphs; line breaks are kept.
fn plain_to_html(text: &str) -> String {
    let normal = text.replace("\r\n", "\n");
    let paragraphs = normal.split("\n\n").map(str::trim_end).filter(|paragraph| !paragraph.trim().is_empty());
    paragraphs.map(|paragraph| format!("<p class=\"plain\">{}</p>\n", escape(paragraph.trim_matches('\n')))).collect()
}

/// Converts Markdown to HTML that cannot load or run anything. HTML in the source is shown as text, an image as its
/// description, and a link as its text unless it is http(s), mailto or within this site. The highest heading becomes a
/// second-level one, since the page has its own first-level heading.
fn markdown_to_html(text: &str) -> String {
    let events: Vec<_> = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH).collect();
    let highest = events.iter().filter_map(|event| match event {
        Event::Start(Tag::Heading { level, .. }) => Some(*level as usize),
        _ => None,
    });
    let highest = highest.min().unwrap_or(1);
    let mut links = Vec::new();
    let harmless = events.into_iter().filter_map(|event| match event {
        Event::Html(html) | Event::InlineHtml(html) => Some(Event::Text(html)),
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => None,
        // Column alignment would need inline styles, which the content security policy forbids.
        Event::Start(Tag::Table(columns)) => Some(Event::Start(Tag::Table(vec![Alignment::None; columns.len()]))),
        Event::Start(Tag::Link { ref dest_url, .. }) => {
            links.push(is_plain_link(dest_url));
            (links.last() == Some(&true)).then_some(event)
        }
        Event::End(TagEnd::Link) => (links.pop() == Some(true)).then_some(event),
        Event::Start(Tag::Heading { level, .. }) => {
            let level = below_the_first(level, highest);
            Some(Event::Start(Tag::Heading { level, id: None, classes: Vec::new(), attrs: Vec::new() }))
        }
        Event::End(TagEnd::Heading(level)) => Some(Event::End(TagEnd::Heading(below_the_first(level, highest)))),
        event => Some(event),
    });
    let mut html = String::new();
    html::push_html(&mut html, harmless.flat_map(scrollable));
    html
}

/// Makes tables and code blocks, which may be wider than the screen, scroll on their own, with the keyboard too.
fn scrollable(event: Event<'_>) -> Vec<Event<'_>> {
    let html = |text: &'static str| Event::Html(CowStr::Borrowed(text));
    match event {
        Event::Start(Tag::Table(_)) => {
            vec![html("<div class=\"wide-table\" role=\"group\" aria-label=\"Table\" tabindex=\"0\">"), event]
        }
        Event::End(TagEnd::Table) => vec![event, html("</div>\n")],
        Event::Start(Tag::CodeBlock(_)) => vec![html("<pre tabindex=\"0\"><code>")],
        Event::End(TagEnd::CodeBlock) => vec![html("</code></pre>\n")],
        event => vec![event],
    }
}

fn below_the_first(level: HeadingLevel, highest: usize) -> HeadingLevel {
    HeadingLevel::try_from(level as usize + 2 - highest).unwrap_or(HeadingLevel::H6)
}

fn is_plain_link(url: &CowStr<'_>) -> bool {
    let inside = (url.starts_with('/') && !url.starts_with("//")) || url.starts_with('#');
    inside || ["https://", "http://", "mailto:"].iter().any(|scheme| url.starts_with(scheme))
}

/// Escapes text for use in HTML content.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_escaped_and_keeps_its_lines() {
        let html = plain_to_html("First\r\n  line <b>\r\n\r\n\r\nSecond & last\n");
        assert_eq!(html, "<p class=\"plain\">First\n  line &lt;b&gt;</p>\n<p class=\"plain\">Second &amp; last</p>\n");
    }

    #[test]
    fn markdown_renders_without_active_content() {
        // case, source, expected HTML
        let table = [
            ("headings", "# Terms\n## Key", "<h2>Terms</h2>\n<h3>Key</h3>\n"),
            ("lower headings", "### Terms\n###### Key\n## Other", "<h3>Terms</h3>\n<h6>Key</h6>\n<h2>Other</h2>\n"),
            ("a heading with a style", "# Terms {style=color:red}", "<h2>Terms {style=color:red}</h2>\n"),
            ("a block of HTML", "<script>alert(1)</script>\n", "&lt;script&gt;alert(1)&lt;/script&gt;\n"),
            ("HTML in a line", "a <img src=x onerror=y> b", "<p>a &lt;img src=x onerror=y&gt; b</p>\n"),
            ("code", "```sh\na <b\n```\n", "<pre tabindex=\"0\"><code>a &lt;b\n</code></pre>\n"),
            ("an image", "![a seal](https://example.com/x.png)", "<p>a seal</p>\n"),
            ("a link", "[mail](mailto:a@example.com)", "<p><a href=\"mailto:a@example.com\">mail</a></p>\n"),
            ("a link that runs", "[x](javascript:alert(1)) y", "<p>x y</p>\n"),
            ("a link that runs, in capitals", "[x](JavaScript:alert(1))", "<p>x</p>\n"),
            ("a link without a scheme", "[x](//example.com)", "<p>x</p>\n"),
        ];
        for (situation, source, html) in table {
            assert_eq!(markdown_to_html(source), html, "{situation}");
        }
        let table = markdown_to_html("| a |\n|--:|\n| 1 |\n");
        assert!(table.contains("<td>1</td>") && !table.contains("style"), "{table}");
        assert!(
            table.starts_with("<div class=\"wide-table\" role=\"group\"") && table.ends_with("</table>\n</div>\n"),
            "{table}"
        );
    }

    #[test]
    fn default_terms_name_the_service() {
        let html = default("Acme <b>");
        assert!(html.contains("Acme &lt;b&gt;") && !html.contains("{brand}"), "{html}");
    }
}
