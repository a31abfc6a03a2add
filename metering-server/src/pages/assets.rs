//! The files that pages refer to. Each is served under a name with a hash of its content, so what a name refers to
//! never changes, and browsers may cache it forever.
//!
//! There is no build step. Files refer to each other as `/assets/NAME`. At startup every reference is replaced by the
//! hashed name, starting with the files that refer to no others, because a hashed name is part of the content of the
//! file that refers to it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use sha3::{Digest, Sha3_256};

use crate::http::Document;

/// The path under which assets are served.
pub(super) const FOLDER: &str = "/assets/";
/// How many hexadecimal digits of the hash are in a name.
const HASH_DIGITS: usize = 16;

/// The assets, by hashed name.
#[derive(Debug)]
pub(super) struct Assets {
    by_path: BTreeMap<String, Document>,
    paths: BTreeMap<String, String>,
    /// The static imports of each script, direct and indirect.
    imports: BTreeMap<String, BTreeSet<String>>,
}

/// The embedded files are inconsistent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AssetError {
    /// A reference to a file that does not exist.
    #[error("{from} refers to {name}, which is not an asset")]
    Unknown {
        /// The referring file.
        from: String,
        /// The missing file.
        name: String,
    },
    /// Files that refer to each other in a cycle cannot be hashed.
    #[error("the assets refer to each other in a cycle through {0}")]
    Circle(String),
    /// A text file is not valid UTF-8.
    #[error("{0} is not text")]
    NotText(String),
}

impl Assets {
    /// Computes the hashed names of the files. Files of an unknown type are not served.
    ///
    /// # Errors
    /// When a referenced file does not exist, or files refer to each other in a cycle.
    pub(super) fn new(files: BTreeMap<String, Vec<u8>>) -> Result<Self, AssetError> {
        let mut builder = AssetBuilder {
            files: &files,
            done: Self { by_path: BTreeMap::new(), paths: BTreeMap::new(), imports: BTreeMap::new() },
            in_progress: Vec::new(),
        };
        for name in files.keys() {
            builder.name(name, "the list of files")?;
        }
        Ok(builder.done)
    }

    /// The asset at a path such as `/assets/style.0123456789abcdef.css`.
    pub(super) fn get(&self, path: &str) -> Option<&Document> {
        self.by_path.get(path)
    }

    /// The path under which a file is served.
    pub(super) fn path(&self, name: &str) -> Option<&str> {
        self.paths.get(name).map(String::as_str)
    }

    /// The paths of the scripts that a script imports, directly and indirectly.
    pub(super) fn imports(&self, name: &str) -> Vec<&str> {
        self.imports.get(name).into_iter().flatten().filter_map(|name| self.path(name)).collect()
    }

    /// Replaces every `/assets/NAME` in a text.
    ///
    /// # Errors
    /// When a referenced file does not exist; `from` names the text in the error.
    pub(super) fn resolve(&self, text: &str, from: &str) -> Result<String, AssetError> {
        replace(text, |_, name| {
            let unknown = || AssetError::Unknown { from: from.to_owned(), name: name.to_owned() };
            self.path(name).map(str::to_owned).ok_or_else(unknown)
        })
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Document)> {
        self.by_path.iter().map(|(path, asset)| (path.as_str(), asset))
    }
}

struct AssetBuilder<'f> {
    files: &'f BTreeMap<String, Vec<u8>>,
    done: Assets,
    in_progress: Vec<String>,
}

impl AssetBuilder<'_> {
    /// The path of a file. If the file has no name yet, names everything it refers to, then the file itself.
    fn name(&mut self, name: &str, from: &str) -> Result<String, AssetError> {
        if let Some(path) = self.done.paths.get(name) {
            return Ok(path.clone());
        }
        let file = self.files.get(name).zip(content_type(name));
        let Some((content, content_type)) = file else {
            return Err(AssetError::Unknown { from: from.to_owned(), name: name.to_owned() });
        };
        if self.in_progress.iter().any(|other| other == name) {
            return Err(AssetError::Circle(name.to_owned()));
        }
        self.in_progress.push(name.to_owned());
        let content = if content_type.starts_with("text/") {
            let text = std::str::from_utf8(content).map_err(|_| AssetError::NotText(name.to_owned()))?;
            let mut imports = BTreeSet::new();
            let text = replace(text, |before, other| {
                let path = self.name(other, name)?;
                // Only static imports: `import(...)` and workers are loaded on demand.
                if before.ends_with("from \"") || before.ends_with("import \"") {
                    imports.insert(other.to_owned());
                    imports.extend(self.done.imports.get(other).into_iter().flatten().cloned());
                }
                Ok(path)
            })?;
            self.done.imports.insert(name.to_owned(), imports);
            Bytes::from(text)
        } else {
            Bytes::copy_from_slice(content)
        };
        self.in_progress.pop();
        let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
        let hash = hex::encode(Sha3_256::digest(&content));
        let path = format!("{FOLDER}{stem}.{}.{extension}", &hash[..HASH_DIGITS]);
        self.done.paths.insert(name.to_owned(), path.clone());
        self.done.by_path.insert(path.clone(), Document::new(content_type, content));
        Ok(path)
    }
}

/// Replaces each `/assets/NAME` with the result of `path`, which is called with the text before it and the name.
fn replace(text: &str, mut path: impl FnMut(&str, &str) -> Result<String, AssetError>) -> Result<String, AssetError> {
    let mut parts = text.split(FOLDER);
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let end = part.find(|c| !in_name(c)).unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        let path = path(&replaced, name)?;
        replaced.push_str(&path);
        replaced.push_str(rest);
    }
    Ok(replaced)
}

fn content_type(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    Some(match extension {
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "txt" => "text/plain; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assets(files: &[(&str, &str)]) -> Result<Assets, AssetError> {
        Assets::new(files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect())
    }

    #[test]
    fn names_change_with_the_content_and_with_what_it_refers_to() {
        let page = ("page.js", "import {x} from \"/assets/part.js\";");
        let one = assets(&[page, ("part.js", "export const x = 1;")]).unwrap();
        let other = assets(&[page, ("part.js", "export const x = 2;")]).unwrap();
        assert_eq!(one.path("page.js"), assets(&[page, ("part.js", "export const x = 1;")]).unwrap().path("page.js"));
        assert_ne!(one.path("part.js"), other.path("part.js"));
        assert_ne!(one.path("page.js"), other.path("page.js"));
        let path = one.path("page.js").unwrap();
        let hash = path.strip_prefix("/assets/page.").and_then(|rest| rest.strip_suffix(".js")).unwrap();
        assert!(hash.len() == HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{path}");
        let text = String::from_utf8(one.get(path).unwrap().body().to_vec()).unwrap();
        assert_eq!(text, format!("import {{x}} from \"{}\";", one.path("part.js").unwrap()));
    }

    #[test]
    fn imports_are_followed_through_others() {
        let files = [
            ("a.js", "import \"/assets/b.js\"; '/assets/x.css'"),
            ("b.js", "import { c } from \"/assets/c.js\"; import(\"/assets/d.js\"); new Worker(\"/assets/d.js\")"),
            ("c.js", ""),
            ("d.js", ""),
            ("x.css", ""),
        ];
        let assets = assets(&files).unwrap();
        assert_eq!(assets.imports("a.js"), [assets.path("b.js").unwrap(), assets.path("c.js").unwrap()]);
        assert!(assets.imports("c.js").is_empty());
    }

    #[test]
    fn references_that_cannot_be_resolved_are_errors() {
        let unknown = assets(&[("a.js", "import \"/assets/b.js\"")]).unwrap_err();
        assert_eq!(unknown.to_string(), "a.js refers to b.js, which is not an asset");
        let circle = assets(&[("a.js", "'/assets/b.js'"), ("b.js", "'/assets/a.js'")]).unwrap_err();
        assert!(matches!(circle, AssetError::Circle(_)), "{circle}");
    }
}
