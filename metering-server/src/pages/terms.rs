//! The terms of use as inert HTML: the operator's text, or a short built-in one.

use std::path::Path;

use crate::pages::markdown::{escape, plain_link, render};
use crate::pages::variables::Variables;

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
    Ok(if markdown { render(&text, &Variables::default(), plain_link).html } else { plain_to_html(&text) })
}

/// The built-in text, with the service's name.
pub(super) fn default(brand: &str) -> String {
    render(DEFAULT, &Variables::new([("brand", brand.to_owned())]), plain_link).html
}

/// Empty lines separate paragraphs; line breaks are kept.
fn plain_to_html(text: &str) -> String {
    let normal = text.replace("\r\n", "\n");
    let paragraphs = normal.split("\n\n").map(str::trim_end).filter(|paragraph| !paragraph.trim().is_empty());
    paragraphs.map(|paragraph| format!("<p class=\"plain\">{}</p>\n", escape(paragraph.trim_matches('\n')))).collect()
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
    fn default_terms_name_the_service() {
        let html = default("Acme <b>");
        assert!(html.contains("Acme &lt;b&gt;") && !html.contains("{{"), "{html}");
    }
}
