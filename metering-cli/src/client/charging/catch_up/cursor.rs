//! The cursor: the block up to which everything is written, and the output. There is one per profile and service, in a
//! file in the profile's directory that is replaced atomically.

use std::path::PathBuf;

use metering_client::ServiceUrl;
use serde::{Deserialize, Serialize};

use crate::client::access::private_file;
use crate::client::access::profile::Profile;
use crate::client::charging::catch_up::block::BlockNumber;
use crate::client::charging::catch_up::plan::Start;
use crate::failure::Failure;

const FILE: &str = "cursor.json";

/// A profile's progress with a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cursor {
    service: String,
    /// The block requested with `--from`; used until a block is written.
    from: Option<BlockNumber>,
    /// The last completed block: written, or skipped because the service does not have it.
    last_block: Option<BlockNumber>,
    /// Where blocks are written.
    pub(super) output: Output,
    /// The blocks that were skipped, as ranges: first and last.
    missing: Vec<(BlockNumber, BlockNumber)>,
}

/// Where blocks are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Output {
    /// Standard output, whatever it was connected to.
    Stdout,
    /// A file.
    File(Written),
}

/// A file, and how much of it is written and counted. Anything beyond that may be the line of an interrupted run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    /// Its absolute path, without links.
    pub(super) path: String,
    /// In bytes.
    pub(super) length: u64,
    /// The last line that a run wrote, to recognize the file.
    pub(super) last_line: Option<LastLine>,
}

/// A line of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LastLine {
    pub(super) block: BlockNumber,
    /// In bytes, including the line break.
    pub(super) length: u64,
}

impl Cursor {
    /// A cursor that has not moved yet.
    pub(super) fn new(service: &ServiceUrl, from: Option<BlockNumber>, output: Output) -> Self {
        Self { service: service.to_string(), from, last_block: None, output, missing: Vec::new() }
    }

    /// Where the next run starts.
    pub(super) fn start(&self) -> Start {
        match (self.last_block, self.from) {
            (Some(last), _) => Start::After(last),
            (None, Some(from)) => Start::At(from),
            (None, None) => Start::Latest,
        }
    }

    /// The last block that is done.
    pub(super) const fn last_block(&self) -> Option<BlockNumber> {
        self.last_block
    }

    /// The block requested with `--from`.
    pub(super) const fn from(&self) -> Option<BlockNumber> {
        self.from
    }

    /// Moves it to a block that is written.
    pub(super) fn advance(&mut self, block: BlockNumber) {
        self.last_block = Some(block);
        self.from = None;
    }

    /// Moves it over a block that the service does not have.
    pub(super) fn skip(&mut self, block: BlockNumber) {
        match self.missing.last_mut() {
            Some((_, last)) if last.next() == block => *last = block,
            _ => self.missing.push((block, block)),
        }
        self.advance(block);
    }

    fn is_sound(&self) -> bool {
        let Output::File(Written { length, last_line, .. }) = &self.output else { return true };
        last_line.is_none_or(|line| line.length <= *length)
    }
}

/// The file with a profile's cursors.
#[derive(Debug)]
pub(super) struct CursorFile {
    path: PathBuf,
    content: Content,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    cursors: Vec<Cursor>,
}

impl CursorFile {
    /// Reads the file, if there is one.
    pub(super) fn load(profile: &Profile) -> Result<Self, Failure> {
        let path = profile.file(FILE);
        let content = match private_file::read(&path)? {
            None => Content::default(),
            Some(text) => {
                let read: Option<Content> = serde_json::from_str(&text).ok();
                let sound = read.filter(|content| content.cursors.iter().all(Cursor::is_sound));
                sound.ok_or_else(|| {
                    Failure::Failed(format!(
                        "{} is damaged, so the last written block is unknown; fix the file, or remove it and start \
                        over with --from",
                        path.display()
                    ))
                })?
            }
        };
        Ok(Self { path, content })
    }

    /// The cursor of a service.
    pub(super) fn of(&self, service: &ServiceUrl) -> Option<Cursor> {
        let service = service.to_string();
        self.content.cursors.iter().find(|cursor| cursor.service == service).cloned()
    }

    /// Replaces the cursor of the same service, and returns once that is on disk.
    pub(super) fn save(&mut self, cursor: &Cursor) -> Result<(), Failure> {
        let cursors = &mut self.content.cursors;
        match cursors.iter_mut().find(|known| known.service == cursor.service) {
            Some(known) => known.clone_from(cursor),
            None => cursors.push(cursor.clone()),
        }
        let text = serde_json::to_vec_pretty(&self.content);
        let text = text.map_err(|error| Failure::Failed(format!("cannot serialize the cursor: {error}")))?;
        private_file::write(&self.path, &text)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::client::access::home::Home;

    const N: fn(u64) -> BlockNumber = BlockNumber::new;

    fn profile(directory: &Path) -> Profile {
        let home = Home::find(|_| Some(directory.into())).unwrap();
        Profile::load(&home, "default".parse().unwrap()).unwrap()
    }

    fn service(url: &str) -> ServiceUrl {
        url.parse().unwrap()
    }

    #[test]
    fn every_service_has_a_cursor_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let profile = profile(directory.path());
        let (here, there) = (service("https://here.example"), service("https://there.example"));
        let mut file = CursorFile::load(&profile).unwrap();
        assert_eq!(file.of(&here), None);
        let mut cursor = Cursor::new(&here, Some(N(7)), Output::Stdout);
        assert_eq!(cursor.start(), Start::At(N(7)));
        file.save(&cursor).unwrap();
        let last_line = Some(LastLine { block: N(900), length: 20 });
        let mut other =
            Cursor::new(&there, None, Output::File(Written { path: "/f".to_owned(), length: 40, last_line }));
        assert_eq!(other.start(), Start::Latest);
        other.advance(N(900));
        file.save(&other).unwrap();
        cursor.advance(N(7));
        assert_eq!(cursor.start(), Start::After(N(7)));
        file.save(&cursor).unwrap();
        let again = CursorFile::load(&profile).unwrap();
        assert_eq!((again.of(&here), again.of(&there)), (Some(cursor), Some(other)));
        assert_eq!(again.of(&service("https://elsewhere.example")), None);
    }

    #[test]
    fn missing_blocks_are_kept_as_ranges() {
        let mut cursor = Cursor::new(&service("https://here.example"), None, Output::Stdout);
        for block in [5, 6, 7, 9] {
            cursor.skip(N(block));
        }
        cursor.advance(N(10));
        cursor.skip(N(11));
        assert_eq!(cursor.missing, [(N(5), N(7)), (N(9), N(9)), (N(11), N(11))]);
        assert_eq!(cursor.start(), Start::After(N(11)));
    }

    #[test]
    fn damaged_file_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let profile = profile(directory.path());
        let impossible = r#"{"cursors":[{"service":"s","from":null,"last_block":1,"missing":[],"output":{"file":
            {"path":"/f","length":5,"last_line":{"block":1,"length":6}}}}]}"#;
        for text in ["", "{", "{}", "[]", r#"{"cursors":[{"service":"https://here.example"}]}"#, impossible] {
            private_file::write(&profile.file(FILE), text.as_bytes()).unwrap();
            assert!(matches!(CursorFile::load(&profile), Err(Failure::Failed(_))), "{text}");
        }
    }
}
