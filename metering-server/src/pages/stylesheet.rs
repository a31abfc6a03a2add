//! Joins the stylesheets of a page into one, without comments and indentation.

use crate::pages::asset_error::AssetError;
use crate::pages::sources::Sources;

/// The text of these stylesheets, in this order.
///
/// # Errors
/// When one is missing or is not text.
pub(super) fn joined(sources: &Sources, names: &[String]) -> Result<String, AssetError> {
    let mut text = String::new();
    for name in names {
        if let Some(licence) = sources.licence(name) {
            text.push_str(&format!("/*! {name}: /assets/{licence} */\n"));
        }
        text.push_str(&compact(sources.text(name, "a page")?));
        text.push('\n');
    }
    Ok(text)
}

/// A stylesheet without comments, indentation and empty lines. Strings are kept unchanged.
fn compact(css: &str) -> String {
    let mut compact = String::with_capacity(css.len());
    let (mut rest, mut gap) = (css, None);
    while let Some(next) = rest.chars().next() {
        let (taken, separates) = if rest.starts_with("/*") {
            (rest.find("*/").map_or(rest.len(), |end| end + 2), true)
        } else if matches!(next, '"' | '\'') {
            (string(rest, next), false)
        } else {
            (next.len_utf8(), next.is_ascii_whitespace())
        };
        let (token, after) = rest.split_at(taken);
        rest = after;
        if separates {
            gap = if token == "\n" { Some('\n') } else { gap.or(Some(' ')) };
            continue;
        }
        let separator = gap.take().filter(|_| !compact.is_empty());
        compact.extend(separator);
        compact.push_str(token);
    }
    compact
}

/// The length of the string at the start of a text.
fn string(text: &str, quote: char) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == quote && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + quote.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_indentation_go_and_strings_stay() {
        // css, compact
        let table = [
            ("/* words */\n:root {\n  --a: 1px;  /* more */\n\n  --b: 2px;\n}\n", ":root {\n--a: 1px;\n--b: 2px;\n}"),
            ("a::before { content: \"  /* ● */ \\\" \"; }", "a::before { content: \"  /* ● */ \\\" \"; }"),
            ("a { b: url('data:,/*  ') }", "a { b: url('data:,/*  ') }"),
            ("a, /* words */ b {}", "a, b {}"),
        ];
        for (css, expected) in table {
            assert_eq!(compact(css), expected, "{css}");
        }
    }
}
