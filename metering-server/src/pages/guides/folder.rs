//! The operator's own pages: the Markdown files of a folder.

use std::path::{Path, PathBuf};

/// The largest page.
const MAX_BYTES: u64 = 256 * 1024;
/// The most pages. A folder with more is probably the wrong one.
const MAX_PAGES: usize = 200;
/// The longest name, without `.md`.
const MAX_NAME: usize = 64;

/// A page before it is rendered.
#[derive(Debug)]
pub(super) struct PageFile {
    /// The last part of its path.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) file: PathBuf,
}

/// A page of the operator's that cannot be shown.
#[derive(Debug, thiserror::Error)]
#[error("configuration key docs.pages: {}: {problem}", file.display())]
pub(crate) struct GuideError {
    /// The file, or the folder.
    pub(super) file: PathBuf,
    /// The error.
    pub(super) problem: String,
}

/// Reads the Markdown files of a folder, sorted by name. Hidden files and other files are ignored.
///
/// # Errors
/// When the folder or a page cannot be read, or a page is too large, is not text, or has a name that cannot be part of
/// a path.
pub(super) fn read(folder: &Path) -> Result<Vec<PageFile>, GuideError> {
    let wrong = |file: &Path, problem: String| GuideError { file: file.to_owned(), problem };
    let unreadable = |error: std::io::Error| wrong(folder, error.to_string());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let hidden = file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && file.extension().is_some_and(|extension| extension == "md") {
            files.push(file);
        }
    }
    if files.len() > MAX_PAGES {
        return Err(wrong(folder, format!("has {} pages; at most {MAX_PAGES} can be shown", files.len())));
    }
    files.sort_unstable();
    files
        .into_iter()
        .map(|file| {
            let name = file.file_stem().and_then(|name| name.to_str()).filter(|name| is_name(name)).map(str::to_owned);
            let Some(name) = name else {
                let rule = "is not a name for a page: use 1 to 64 lower-case letters, digits and hyphens before .md";
                return Err(wrong(&file, rule.to_owned()));
            };
            let text = read_text(&file).map_err(|problem| wrong(&file, problem))?;
            Ok(PageFile { name, text, file })
        })
        .collect()
}

fn read_text(file: &Path) -> Result<String, String> {
    // Before it is opened: opening a pipe blocks until it has a writer.
    let found = std::fs::metadata(file).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("is not a regular file".to_owned());
    }
    if found.len() > MAX_BYTES {
        return Err("is larger than 256 KiB".to_owned());
    }
    let bytes = std::fs::read(file).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(after_mark) => after_mark.to_owned(),
        None => text,
    })
}

/// Whether a text can be the last part of a page's path.
pub(super) fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.starts_with('-') && (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(plain)
}
