//! The files that pages refer to. Each is served under a name with a hash of its content, so what a name refers to
//! never changes, and browsers may cache it forever.
//!
//! There is no build step. Files refer to each other as `/assets/NAME`. At startup every reference is replaced by the
//! hashed name, starting with the files that refer to no others, because a hashed name is part of the content of the
//! file that refers to it. The scripts of a page are joined into one, and so are its stylesheets.

use std::collections::BTreeMap;

use sha3::{Digest, Sha3_256};

use crate::http::Document;
use crate::pages::asset_error::AssetError;
use crate::pages::joined::Joined;
use crate::pages::sources::Sources;
use crate::pages::stylesheet;

/// The path under which assets are served.
pub(super) const FOLDER: &str = "/assets/";
/// How many hexadecimal digits of the hash are in a name.
const HASH_DIGITS: usize = 16;

/// How a page's head names a stylesheet and a script, up to the path.
pub(super) const STYLESHEET: &str = "<link rel=\"stylesheet\" href=\"";
pub(super) const SCRIPT: &str = "<script type=\"module\" src=\"";

/// The assets, by hashed name.
#[derive(Debug, Default)]
pub(super) struct Assets {
    by_path: BTreeMap<String, Document>,
    /// The path of each file that is served unchanged.
    paths: BTreeMap<String, String>,
}

impl Assets {
    /// The asset at a path such as `/assets/account.0123456789abcdef.js`.
    pub(super) fn get(&self, path: &str) -> Option<&Document> {
        self.by_path.get(path)
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Document)> {
        self.by_path.iter().map(|(path, asset)| (path.as_str(), asset))
    }

    /// The path under which a file is served.
    #[cfg(test)]
    pub(super) fn path(&self, name: &str) -> Option<&str> {
        self.paths.get(name).map(String::as_str)
    }
}

/// Collects the assets that pages request while they are rendered.
#[derive(Debug)]
pub(super) struct AssetBuilder {
    sources: Sources,
    done: Assets,
    in_progress: Vec<String>,
    /// The paths of joined scripts and stylesheets, by what is joined.
    joined: BTreeMap<Vec<String>, String>,
}

impl AssetBuilder {
    /// Names all files but scripts and stylesheets, which are named when something refers to them.
    ///
    /// # Errors
    /// When a referenced file does not exist, or files refer to each other in a cycle.
    pub(super) fn new(files: BTreeMap<String, Vec<u8>>) -> Result<Self, AssetError> {
        let sources = Sources::new(files);
        let is_named = |name: &&str| !name.ends_with(".css") && !name.ends_with(".js");
        let names: Vec<_> = sources.names().filter(is_named).map(str::to_owned).collect();
        let mut builder = Self { sources, done: Assets::default(), in_progress: Vec::new(), joined: BTreeMap::new() };
        for name in names {
            builder.path(&name, "the list of files")?;
        }
        Ok(builder)
    }

    /// The path of a file. If the file has no name yet, names everything it refers to, then the file itself.
    ///
    /// # Errors
    /// When it does not exist, or refers to itself, or to what does not exist; `from` names what refers to it.
    pub(super) fn path(&mut self, name: &str, from: &str) -> Result<String, AssetError> {
        if let Some(path) = self.done.paths.get(name) {
            return Ok(path.clone());
        }
        let Some((stem, extension)) = name.rsplit_once('.').filter(|(_, extension)| content_type(extension).is_some())
        else {
            return Err(AssetError::Unknown { from: from.to_owned(), name: name.to_owned() });
        };
        if self.in_progress.iter().any(|other| other == name) {
            return Err(AssetError::Circle(name.to_owned()));
        }
        self.in_progress.push(name.to_owned());
        let content = if is_text(extension) {
            let text = self.sources.text(name, from)?.to_owned();
            self.resolve(&text, name)?.into_bytes()
        } else {
            self.sources.file(name, from)?.to_vec()
        };
        self.in_progress.pop();
        let path = self.add(stem, extension, content);
        self.done.paths.insert(name.to_owned(), path.clone());
        Ok(path)
    }

    /// Replaces every `/assets/NAME` in a text, except the stylesheets and scripts of a page's head.
    ///
    /// # Errors
    /// When a referenced file does not exist; `from` names the text in the error.
    pub(super) fn resolve(&mut self, text: &str, from: &str) -> Result<String, AssetError> {
        replace(text, |before, name| {
            let is_joined = before.ends_with(STYLESHEET) || before.ends_with(SCRIPT);
            if is_joined { Ok(format!("{FOLDER}{name}")) } else { self.path(name, from) }
        })
    }

    /// The path of the script that runs these modules.
    ///
    /// # Errors
    /// When they cannot be joined.
    pub(super) fn script(&mut self, names: &[String]) -> Result<String, AssetError> {
        if let Some(path) = self.joined.get(names) {
            return Ok(path.clone());
        }
        let joined = Joined::page(&mut self.sources, names)?;
        let path = self.add_script(names.last().map_or("", String::as_str), &joined)?;
        self.joined.insert(names.to_vec(), path.clone());
        Ok(path)
    }

    fn add_script(&mut self, name: &str, joined: &Joined) -> Result<String, AssetError> {
        let mut parts = BTreeMap::new();
        for (part, script) in &joined.parts {
            parts.insert(part.as_str(), self.add_script(part, script)?);
        }
        let text = replace(&joined.text, |_, other| match parts.get(other) {
            Some(path) => Ok(path.clone()),
            None => self.path(other, name),
        })?;
        Ok(self.add(name.strip_suffix(".js").unwrap_or(name), "js", text.into_bytes()))
    }

    /// The path of the stylesheet that has these.
    ///
    /// # Errors
    /// When one is missing, or refers to a file that does not exist.
    pub(super) fn stylesheet(&mut self, names: &[String]) -> Result<String, AssetError> {
        if let Some(path) = self.joined.get(names) {
            return Ok(path.clone());
        }
        let name = names.last().map_or("", String::as_str);
        let text = stylesheet::joined(&self.sources, names)?;
        let text = self.resolve(&text, name)?;
        let path = self.add(name.strip_suffix(".css").unwrap_or(name), "css", text.into_bytes());
        self.joined.insert(names.to_vec(), path.clone());
        Ok(path)
    }

    fn add(&mut self, stem: &str, extension: &str, content: Vec<u8>) -> String {
        let hash = hex::encode(Sha3_256::digest(&content));
        let path = format!("{FOLDER}{stem}.{}.{extension}", &hash[..HASH_DIGITS]);
        let document = || Document::new(content_type(extension).unwrap_or_default(), content);
        self.done.by_path.entry(path.clone()).or_insert_with(document);
        path
    }

    /// The assets that were named.
    pub(super) fn finish(self) -> Assets {
        self.done
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

/// Whether such a file may refer to others.
fn is_text(extension: &str) -> bool {
    content_type(extension).is_some_and(|kind| kind.starts_with("text/"))
}

fn content_type(extension: &str) -> Option<&'static str> {
    Some(match extension {
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "txt" => "text/plain; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assets(files: &[(&str, &str)]) -> AssetBuilder {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
        AssetBuilder::new(files.collect()).unwrap()
    }

    fn script(files: &[(&str, &str)], name: &str) -> Result<(String, Assets), AssetError> {
        let mut assets = assets(files);
        let path = assets.script(&[name.to_owned()])?;
        Ok((path, assets.finish()))
    }

    fn text<'a>(assets: &'a Assets, path: &str) -> &'a str {
        std::str::from_utf8(assets.get(path).unwrap().body()).unwrap()
    }

    #[test]
    fn names_change_with_the_content_and_with_what_it_refers_to() {
        let page = ("page.js", "import { x } from \"/assets/part.js\";\nx(\"/assets/other.js\");");
        let files = |part, other| [page, ("part.js", part), ("other.js", other)];
        let (one, assets) = script(&files("export const x = 1;", "a()"), "page.js").unwrap();
        assert_eq!(one, script(&files("export const x = 1;", "a()"), "page.js").unwrap().0);
        assert_ne!(one, script(&files("export const x = 2;", "a()"), "page.js").unwrap().0);
        assert_ne!(one, script(&files("export const x = 1;", "b()"), "page.js").unwrap().0);
        let hash = one.strip_prefix("/assets/page.").and_then(|rest| rest.strip_suffix(".js")).unwrap();
        assert!(hash.len() == HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
        let other = assets.path("other.js").unwrap();
        assert!(text(&assets, &one).contains(&format!("x(\"{other}\");")));
        assert_eq!(text(&assets, other), "a()", "a file that is not a module of the page is served unchanged");
    }

    #[test]
    fn parts_of_a_script_are_assets() {
        let files =
            [("page.js", "const load = () => import(\"/assets/part.js\");"), ("part.js", "export const x = 1;")];
        let (page, assets) = script(&files, "page.js").unwrap();
        let paths: Vec<_> = assets.iter().map(|(path, _)| path).collect();
        let part = paths.iter().find(|path| path.starts_with("/assets/part.")).unwrap();
        assert_eq!(paths.len(), 2);
        assert!(text(&assets, &page).contains(&format!("import(\"{part}\" + ")));
    }

    #[test]
    fn stylesheets_are_joined_and_refer_to_fonts() {
        let files =
            [("a.css", "a { b: url(\"/assets/c.woff2\"); }\n"), ("b.css", "/* words */\nd {}"), ("c.woff2", "font")];
        let mut assets = assets(&files);
        let path = assets.stylesheet(&["a.css".to_owned(), "b.css".to_owned()]).unwrap();
        let assets = assets.finish();
        assert!(path.starts_with("/assets/b.") && path.ends_with(".css"), "{path}");
        let font = assets.path("c.woff2").unwrap();
        assert_eq!(text(&assets, &path), format!("a {{ b: url(\"{font}\"); }}\nd {{}}\n"));
    }

    #[test]
    fn references_that_cannot_be_resolved_are_errors() {
        let unknown = script(&[("a.js", "b(\"/assets/b.js\")")], "a.js").unwrap_err();
        assert_eq!(unknown.to_string(), "a.js refers to b.js, which is not an asset");
        let circle = [("a.js", "a(\"/assets/b.js\")"), ("b.js", "'/assets/c.js'"), ("c.js", "'/assets/b.js'")];
        let circle = script(&circle, "a.js").unwrap_err();
        assert!(matches!(circle, AssetError::Circle(_)), "{circle}");
    }
}
