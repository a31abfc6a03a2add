//! Puts one stylesheet and one script into the head of a page, instead of those that its templates name.
//!
//! Templates name what they need, the layout for all pages and each page for itself, so the server knows what to join
//! only when a page is rendered. Text of the operator in a head is escaped, so it cannot look like these elements.

use crate::pages::asset_error::AssetError;
use crate::pages::assets::{AssetBuilder, FOLDER, SCRIPT, STYLESHEET};

const END: &str = "</head>";

/// The page with its stylesheets and scripts joined.
///
/// # Errors
/// When they cannot be joined.
pub(super) fn with_joined(html: &str, assets: &mut AssetBuilder) -> Result<String, AssetError> {
    let Some((head, body)) = html.split_once(END) else { return Ok(html.to_owned()) };
    let (head, styles) = without(head, STYLESHEET, "\">");
    let (head, scripts) = without(&head, SCRIPT, "\"></script>");
    let (style, script) = (assets.stylesheet(&styles)?, assets.script(&scripts)?);
    let head = head.trim_end();
    Ok(format!("{head}\n  {STYLESHEET}{style}\">\n  {SCRIPT}{script}\"></script>\n{END}{body}"))
}

/// A head without certain elements, and the files that they name.
fn without(head: &str, start: &str, end: &str) -> (String, Vec<String>) {
    let start = format!("{start}{FOLDER}");
    let mut parts = head.split(&start);
    let (mut rest, mut names) = (parts.next().unwrap_or_default().to_owned(), Vec::new());
    for part in parts {
        let (name, after) = part.split_once(end).unwrap_or((part, ""));
        names.push(name.to_owned());
        rest.truncate(rest.trim_end().len());
        rest.push_str(after);
    }
    (rest, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_one_stylesheet_and_one_script() {
        let files =
            [("a.css", "a {}"), ("b.css", "b {}"), ("c.js", "c();"), ("d.js", "import \"/assets/c.js\";\nd();")];
        let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
        let mut assets = AssetBuilder::new(files.into()).unwrap();
        let html = "<head>\n  <title>A</title>\n  <link rel=\"stylesheet\" href=\"/assets/a.css\">\n  \
                    <script type=\"module\" src=\"/assets/c.js\"></script>\n  <link rel=\"stylesheet\" href=\"/assets/b.css\">\n  \
                    <script src=\"https://example.com/x.js\" defer></script>\n  \
                    <script type=\"module\" src=\"/assets/d.js\"></script>\n\n</head>\n<body>text</body>";
        let names = |names: [&str; 2]| names.map(str::to_owned);
        let style = assets.stylesheet(&names(["a.css", "b.css"])).unwrap();
        let script = assets.script(&names(["c.js", "d.js"])).unwrap();
        let expected = format!(
            "<head>\n  <title>A</title>\n  <script src=\"https://example.com/x.js\" defer></script>\n  \
             <link rel=\"stylesheet\" href=\"{style}\">\n  <script type=\"module\" src=\"{script}\"></script>\n</head>\n\
             <body>text</body>"
        );
        assert_eq!(with_joined(html, &mut assets).unwrap(), expected);
    }
}
