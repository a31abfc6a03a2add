//! The file that blocks are appended to, one line each.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::client::charging::catch_up::block::{Block, BlockNumber};
use crate::client::charging::catch_up::cursor::{LastLine, Written};
use crate::failure::Failure;
use crate::new_file::{directory_of, sync_directory};

/// The longest tail to remove, in bytes. An interrupted run leaves at most one line, and no line is nearly this long.
const TAIL_BYTES_MAX: u64 = 1 << 27;

/// The open file, locked against other runs.
#[derive(Debug)]
pub(super) struct OutputFile {
    file: File,
    path: String,
    /// How much of it is written and counted.
    length: u64,
    last_line: Option<LastLine>,
}

impl OutputFile {
    /// Opens a file; creates it if `create` is set. All of it counts as written until
    /// [`OutputFile::truncate_to_cursor`].
    pub(super) fn open(path: &Path, create: bool) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::Failed(format!("cannot write {}: {error}", path.display()));
        let file =
            OpenOptions::new().read(true).write(true).create(create).truncate(false).open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(Failure::Usage(format!(
                "{} is not a regular file; omit --output to write to standard output",
                path.display()
            )));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::Conflict(format!(
                    "another process is writing to {}; wait for it to finish",
                    path.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let absolute = path.canonicalize().map_err(failed)?;
        // So that a new file keeps its name after a crash.
        sync_directory(directory_of(&absolute)).map_err(failed)?;
        let path = absolute.into_os_string().into_string();
        let path = path.map_err(|path| Failure::Usage(format!("{} is not UTF-8", path.display())))?;
        Ok(Self { file, path, length: metadata.len(), last_line: None })
    }

    /// Whether it is empty.
    pub(super) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether it ends with a complete line, so that another can be appended.
    pub(super) fn is_at_line_start(&mut self) -> Result<bool, Failure> {
        let Some(last) = self.length.checked_sub(1) else { return Ok(true) };
        Ok(self.read(last, 1)? == b"\n")
    }

    /// The cursor's record of it.
    pub(super) fn written(&self) -> Written {
        Written { path: self.path.clone(), length: self.length, last_line: self.last_line }
    }

    /// Whether a cursor refers to it.
    pub(super) fn is(&self, written: &Written) -> bool {
        self.path == written.path
    }

    /// Restores the state that the cursor records: removes the line that an interrupted run wrote but did not count.
    /// Returns the number of bytes removed.
    ///
    /// # Errors
    /// When it is no longer the file that the cursor refers to, or contains more than an interrupted run leaves.
    pub(super) fn truncate_to_cursor(&mut self, written: &Written) -> Result<u64, Failure> {
        let actual = self.file.metadata().map_err(|error| self.failed("read", &error))?.len();
        if actual < written.length {
            return Err(Failure::Conflict(format!(
                "{} has {actual} bytes, but {} were written; if you moved or emptied it on purpose, continue in a new \
                file with --new-output",
                self.path, written.length
            )));
        }
        if let Some(line) = written.last_line {
            let text = self.read(written.length - line.length, line.length)?;
            let known = text.ends_with(b"\n") && Block::read(&text).is_ok_and(|block| block.number == line.block);
            if !known {
                return Err(self.changed(&format!("block {} is not where it was written", line.block)));
            }
        }
        let tail = actual - written.length;
        if tail > 0 {
            self.check_tail(written.length, tail)?;
            self.truncate(written.length).map_err(|error| self.failed("truncate", &error))?;
        }
        (self.length, self.last_line) = (written.length, written.last_line);
        Ok(tail)
    }

    /// Appends a block, and returns once it is on disk. If that fails, the file is truncated again if possible;
    /// otherwise [`OutputFile::truncate_to_cursor`] removes the partial line later.
    pub(super) fn append(&mut self, block: BlockNumber, line: &[u8]) -> Result<(), Failure> {
        let appended = self.write_at_end(line).and_then(|()| self.file.sync_data());
        if let Err(error) = appended {
            let _ = self.truncate(self.length);
            return Err(self.failed("write", &error));
        }
        let length = u64::try_from(line.len()).expect("a line's length fits 64 bits");
        self.length += length;
        self.last_line = Some(LastLine { block, length });
        Ok(())
    }

    /// Writes after the counted part, without counting it.
    pub(super) fn write_at_end(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(self.length))?;
        self.file.write_all(bytes)
    }

    /// Rejects a tail that no interrupted run leaves: such a run leaves part of a line, or one whole block.
    fn check_tail(&mut self, start: u64, length: u64) -> Result<(), Failure> {
        let more = "it contains more than was written";
        if length > TAIL_BYTES_MAX {
            return Err(self.changed(more));
        }
        let tail = self.read(start, length)?;
        match tail.iter().position(|byte| *byte == b'\n') {
            None => Ok(()),
            Some(end) if end + 1 == tail.len() && Block::read(&tail).is_ok() => Ok(()),
            Some(_) => Err(self.changed(more)),
        }
    }

    fn truncate(&self, length: u64) -> std::io::Result<()> {
        self.file.set_len(length)?;
        self.file.sync_data()
    }

    fn read(&mut self, start: u64, length: u64) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let read =
            self.file.seek(SeekFrom::Start(start)).and_then(|_| (&self.file).take(length).read_to_end(&mut bytes));
        read.map_err(|error| self.failed("read", &error))?;
        Ok(bytes)
    }

    fn changed(&self, how: &str) -> Failure {
        Failure::Conflict(format!(
            "{} was changed since the last run: {how}; fix it, or move it away and continue in a new file with \
            --new-output",
            self.path
        ))
    }

    fn failed(&self, what: &str, error: &std::io::Error) -> Failure {
        Failure::Failed(format!("cannot {what} {}: {error}; the blocks up to the cursor are safe in it", self.path))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const N: fn(u64) -> BlockNumber = BlockNumber::new;

    fn line(number: u64) -> String {
        format!("{{\"block_number\":{number}}}\n")
    }

    /// A file with blocks 1 and 2, and what the cursor records about it.
    fn two_blocks(path: &Path) -> Written {
        let mut file = OutputFile::open(path, true).unwrap();
        file.append(N(1), line(1).as_bytes()).unwrap();
        file.append(N(2), line(2).as_bytes()).unwrap();
        file.written()
    }

    fn truncate_to_cursor(path: &Path, written: &Written) -> Result<u64, Failure> {
        OutputFile::open(path, false).unwrap().truncate_to_cursor(written)
    }

    #[test]
    fn only_the_partial_line_of_an_interrupted_run_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("blocks.jsonl");
        let written = two_blocks(&path);
        let complete = line(1) + &line(2);
        let next = line(3);
        for torn in 0..=next.len() {
            fs::write(&path, complete.clone() + &next[..torn]).unwrap();
            assert_eq!(truncate_to_cursor(&path, &written).unwrap(), u64::try_from(torn).unwrap());
            assert_eq!(fs::read_to_string(&path).unwrap(), complete);
        }
        // what another program wrote
        for foreign in ["note\n", "{}\n", "\n", "{\"block_number\":3}\n{\"block", "{\"block_number\":3}\n{}\n"] {
            fs::write(&path, complete.clone() + foreign).unwrap();
            let refused = truncate_to_cursor(&path, &written);
            assert!(
                matches!(&refused, Err(Failure::Conflict(text)) if text.contains("more than was written")),
                "{refused:?}"
            );
            assert_eq!(fs::read_to_string(&path).unwrap(), complete.clone() + foreign);
        }
    }

    #[test]
    fn replaced_file_is_not_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("blocks.jsonl");
        let written = two_blocks(&path);
        let others = ["".to_owned(), line(1), line(1) + &line(3), line(2) + &line(2)[1..] + "\n", "x".repeat(500)];
        for content in others {
            fs::write(&path, &content).unwrap();
            assert!(matches!(truncate_to_cursor(&path, &written), Err(Failure::Conflict(_))), "{content}");
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
    }

    #[test]
    fn one_run_at_a_time_writes_to_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("blocks.jsonl");
        let first = OutputFile::open(&path, true).unwrap();
        assert!(matches!(OutputFile::open(&path, true), Err(Failure::Conflict(_))));
        drop(first);
        assert!(OutputFile::open(&path, true).is_ok());
    }

    #[test]
    fn unappendable_output_is_rejected() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(OutputFile::open(directory.path(), true), Err(Failure::Failed(_))));
        assert!(matches!(OutputFile::open(&directory.path().join("no/file"), true), Err(Failure::Failed(_))));
        assert!(matches!(OutputFile::open(&directory.path().join("file"), false), Err(Failure::Failed(_))));
        #[cfg(unix)]
        assert!(matches!(OutputFile::open(Path::new("/dev/null"), true), Err(Failure::Usage(_))));
    }

    #[test]
    fn complete_lines_are_distinguished_from_partial_ones() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("blocks.jsonl");
        for (content, at_line_start) in [("", true), ("a\n", true), ("a", false), ("a\nb", false)] {
            fs::write(&path, content).unwrap();
            assert_eq!(
                OutputFile::open(&path, false).unwrap().is_at_line_start().unwrap(),
                at_line_start,
                "{content:?}"
            );
        }
    }
}
