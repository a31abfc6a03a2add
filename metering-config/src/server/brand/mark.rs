//! The operator's mark: an SVG or PNG file instead of the built-in one.

use std::fmt;
use std::path::Path;

use crate::ConfigError;
use crate::regular_file;

/// A mark is on every page, so it must be small.
const MAX_BYTES: usize = 64 * 1024;
const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// The widest and highest PNG.
const MAX_PIXELS: u32 = 2_048;

/// The kinds of images that a mark may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkKind {
    /// Scalable, as XML.
    Svg,
    /// Pixels.
    Png,
}

/// A mark that was read from its file and checked.
#[derive(Clone, PartialEq, Eq)]
pub struct Mark {
    kind: MarkKind,
    content: Vec<u8>,
}

impl Mark {
    /// Reads the mark of `brand.mark`. Blocks for as long as the file system does.
    ///
    /// # Errors
    /// When the file cannot be read, is larger than 64 KiB, or is neither SVG nor PNG.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let problem =
            |problem: &dyn fmt::Display| ConfigError::key("brand.mark", format_args!("{}: {problem}", file.display()));
        let content = regular_file::read(file).map_err(|error| problem(&error))?;
        if content.len() > MAX_BYTES {
            return Err(problem(&"must be at most 64 KiB"));
        }
        match kind_of(&content) {
            Some(kind) => Ok(Self { kind, content }),
            None => Err(problem(&"must be an SVG, or a PNG of at most 2048 by 2048 pixels")),
        }
    }

    /// What kind of image it is, by its content.
    #[must_use]
    pub const fn kind(&self) -> MarkKind {
        self.kind
    }

    /// The content of the file.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        &self.content
    }
}

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mark({:?}, {} bytes)", self.kind, self.content.len())
    }
}

fn kind_of(content: &[u8]) -> Option<MarkKind> {
    if let Some(rest) = content.strip_prefix(PNG_SIGNATURE) {
        // The first chunk is the header: length, "IHDR", width, height (PNG, section 11.2.1).
        let size = |at: usize| Some(u32::from_be_bytes(rest.get(at..at + 4)?.try_into().ok()?));
        let is_fine = |size: u32| (1..=MAX_PIXELS).contains(&size);
        let fits = rest.get(4..8)? == b"IHDR" && is_fine(size(8)?) && is_fine(size(12)?);
        return fits.then_some(MarkKind::Png);
    }
    is_svg(std::str::from_utf8(content).ok()?).then_some(MarkKind::Svg)
}

/// Whether the root element is `svg`, after a declaration, comments and a document type.
fn is_svg(text: &str) -> bool {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let end = if rest.starts_with("<?") {
            "?>"
        } else if rest.starts_with("<!--") {
            "-->"
        } else if rest.starts_with("<!") {
            ">"
        } else {
            let root = rest.strip_prefix("<svg");
            return root.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_whitespace() || c == '>'));
        };
        match rest.split_once(end) {
            Some((_, after)) => rest = after.trim_start(),
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        [PNG_SIGNATURE, &[0, 0, 0, 13], b"IHDR", &width.to_be_bytes(), &height.to_be_bytes(), &[8, 6, 0, 0, 0]].concat()
    }

    #[test]
    fn kind_is_decided_by_the_content() {
        let svg = |text: &str| text.as_bytes().to_vec();
        // content, kind
        let table = [
            (svg("<svg xmlns=\"http://www.w3.org/2000/svg\"/>"), Some(MarkKind::Svg)),
            (svg("\u{feff}<?xml version=\"1.0\"?>\n<!-- a > b -->\n<!DOCTYPE svg>\n<svg>"), Some(MarkKind::Svg)),
            (png(512, 512), Some(MarkKind::Png)),
            (png(2_048, 1), Some(MarkKind::Png)),
            (png(2_049, 1), None),
            (png(0, 1), None),
            (png(1, 1)[..20].to_vec(), None),
            (svg("<html><svg></svg></html>"), None),
            (svg("<svgfoo>"), None),
            (svg("<!-- <svg>"), None),
            (svg(""), None),
            (b"\xff\xd8\xff\xe0".to_vec(), None),
        ];
        for (content, kind) in table {
            assert_eq!(kind_of(&content), kind, "{}", String::from_utf8_lossy(&content));
        }
    }

    #[test]
    fn file_must_be_small_and_an_image() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mark.svg");
        let read = |content: &[u8]| {
            std::fs::write(&file, content).unwrap();
            Mark::read(&file).map_err(|error| error.to_string())
        };
        assert_eq!(read(b"<svg>").unwrap().kind(), MarkKind::Svg);
        for (content, problem) in [("<p>".to_owned(), "must be an SVG"), ("<svg>".repeat(20_000), "at most 64 KiB")] {
            let error = read(content.as_bytes()).unwrap_err();
            assert!(error.contains("brand.mark") && error.contains(problem), "{error}");
        }
        let missing = Mark::read(&folder.path().join("none.svg")).unwrap_err().to_string();
        assert!(missing.contains("brand.mark") && missing.contains("none.svg"), "{missing}");
    }
}
