//! The last checkpoint that was signed, kept next to the key: `KEY_FILE.last`. If an old backup is restored, its log is
//! shorter than the one that others have seen, and signing it would create a fork.
//!
//! While the key is being rotated, it is next to both keys, and the later one counts: the new key must not sign what
//! the old one would refuse, and vice versa if the operator reverts the rotation.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use metering_core::store::LogEpoch;
use metering_core::{Randomness, SystemRandomness};
use metering_log::checkpoint::{Checkpoint, SignedCheckpoint};
use metering_log::tree::{TreeHash, verify_consistency};
use tokio::task::spawn_blocking;

/// Why this process must not sign the log that its store has.
#[derive(Debug, thiserror::Error)]
#[error(
    "{what}: an old backup was restored, or the key file belongs to another database. Nothing is signed. If this is the \
         right database, run `metering admin log new-epoch`, and restart the server"
)]
pub(super) struct Rollback {
    what: String,
}

impl Rollback {
    fn other_entries(epoch: &LogEpoch) -> Self {
        Self { what: format!("the log {} has different entries from when it was last signed", epoch.origin) }
    }
}

/// The last checkpoint that was signed with the keys of some files.
#[derive(Debug)]
pub(super) struct LastSigned {
    files: Vec<KeptFile>,
    /// The checkpoints in the files; after a signature, only the last one.
    checkpoints: Vec<Checkpoint>,
    is_everywhere: bool,
}

/// The file next to one key file.
#[derive(Debug, Clone)]
struct KeptFile {
    path: PathBuf,
    /// Written before it replaces the file. Each process has its own: several may share the key file.
    temporary: PathBuf,
}

impl LastSigned {
    /// Reads the files next to `key_files`. Blocks while the file system does.
    ///
    /// # Errors
    /// When one cannot be read, or is not a checkpoint.
    pub(super) fn read<'a>(key_files: impl IntoIterator<Item = &'a Path>) -> io::Result<Self> {
        let files: Vec<KeptFile> = key_files.into_iter().map(KeptFile::next_to).collect();
        let kept = files.iter().map(KeptFile::read).collect::<io::Result<Vec<_>>>()?;
        let is_everywhere = kept.windows(2).all(|two| two[0] == two[1]);
        Ok(Self { files, checkpoints: kept.into_iter().flatten().collect(), is_everywhere })
    }

    /// Whether each file has the same. Otherwise the checkpoint is to be remembered again: a key must know it when its file is
    /// the only one left.
    pub(super) fn is_everywhere(&self) -> bool {
        self.is_everywhere
    }

    /// The last checkpoint of the log that this epoch belongs to, in any of its epochs. `None` if there is none: the log is
    /// new, or the service had a different URL.
    fn of(&self, epoch: &LogEpoch) -> Option<&Checkpoint> {
        let place = numbered(&epoch.origin).map(|(place, _)| place);
        let is_same = |last: &&Checkpoint| {
            let other = numbered(last.origin()).map(|(place, _)| place);
            last.origin() == epoch.origin || (place.is_some() && other == place)
        };
        let of_log = self.checkpoints.iter().filter(is_same);
        of_log.max_by_key(|last| (numbered(last.origin()).map(|(_, number)| number), last.size()))
    }

    /// The size of the last checkpoint of this epoch, from which [`LastSigned::check`] needs a consistency proof.
    ///
    /// # Errors
    /// When the epoch is shorter, or as long with other entries, or when a later one was signed.
    pub(super) fn size(&self, epoch: &LogEpoch) -> Result<u64, Rollback> {
        let Some(last) = self.of(epoch) else { return Ok(0) };
        if last.origin() != epoch.origin {
            return match (numbered(last.origin()), numbered(&epoch.origin)) {
                (Some((_, later)), Some((_, number))) if later > number => Err(Rollback {
                    what: format!("the log {} was signed, and the store has {}", last.origin(), epoch.origin),
                }),
                // From an earlier epoch.
                _ => Ok(0),
            };
        }
        if last.size() > epoch.size {
            let (signed, size) = (last.size(), epoch.size);
            let what =
                format!("the log {} had {signed} entries when it was last signed, and now has {size}", epoch.origin);
            return Err(Rollback { what });
        }
        if last.size() == epoch.size && last.root() != TreeHash::from_bytes(epoch.root) {
            return Err(Rollback::other_entries(epoch));
        }
        Ok(last.size())
    }

    /// Checks that the epoch continues the last checkpoint, by the proof from [`LastSigned::size`].
    ///
    /// # Errors
    /// When it does not.
    pub(super) fn check(&self, epoch: &LogEpoch, proof: &[TreeHash]) -> Result<(), Rollback> {
        let Some(last) = self.of(epoch).filter(|last| last.origin() == epoch.origin) else { return Ok(()) };
        let root = TreeHash::from_bytes(epoch.root);
        verify_consistency(last.size(), last.root(), epoch.size, root, proof)
            .map_err(|_| Rollback::other_entries(epoch))
    }

    /// Stores a checkpoint that another node published, if the proof leads from it to the epoch. This node may sign
    /// next, and must notice if an old backup is restored before it does.
    ///
    /// # Errors
    /// As [`LastSigned::remember`].
    pub(super) async fn follow(
        &mut self,
        published: &SignedCheckpoint,
        epoch: &LogEpoch,
        proof: &[TreeHash],
    ) -> io::Result<()> {
        let (head, root) = (published.checkpoint(), TreeHash::from_bytes(epoch.root));
        let is_continued = verify_consistency(head.size(), head.root(), epoch.size, root, proof).is_ok();
        if head.origin() == epoch.origin && is_continued { self.remember(published).await } else { Ok(()) }
    }

    /// Remembers a checkpoint before it is published.
    ///
    /// # Errors
    /// When a file cannot be written. It is remembered until the process ends.
    pub(super) async fn remember(&mut self, signed: &SignedCheckpoint) -> io::Result<()> {
        (self.checkpoints, self.is_everywhere) = (vec![signed.checkpoint().clone()], true);
        let (files, text) = (self.files.clone(), signed.to_string());
        // All of them, even if one cannot be written.
        let written = spawn_blocking(move || {
            let written: Vec<io::Result<()>> = files.iter().map(|file| file.write(&text)).collect();
            written.into_iter().collect::<io::Result<()>>()
        });
        written.await.map_err(io::Error::other)?
    }

    /// The files, for messages.
    pub(super) fn files(&self) -> String {
        let files = self.files.iter().map(|file| file.path.display().to_string());
        files.collect::<Vec<_>>().join(" and ")
    }
}

impl KeptFile {
    fn next_to(key_file: &Path) -> Self {
        let mut own = [0; 8];
        SystemRandomness.fill(&mut own);
        let temporary = with_suffix(key_file, &format!(".last.{}", hex::encode(own)));
        Self { path: with_suffix(key_file, ".last"), temporary }
    }

    fn read(&self) -> io::Result<Option<Checkpoint>> {
        let about = |error: &dyn std::fmt::Display| io::Error::other(format!("{}: {error}", self.path.display()));
        let damaged = |error: &dyn std::fmt::Display| {
            about(&format_args!(
                "{error}. This file detects old backups of the database. If the database is current, move the file away"
            ))
        };
        match fs::read_to_string(&self.path) {
            Ok(text) => match text.parse::<SignedCheckpoint>() {
                Ok(signed) => Ok(Some(signed.checkpoint().clone())),
                Err(error) => Err(damaged(&error)),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(about(&error)),
        }
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut new = File::create(&self.temporary)?;
        new.write_all(text.as_bytes())?;
        // Otherwise a power cut may leave an empty file under the new name, and the server would not start.
        new.sync_data()?;
        fs::rename(&self.temporary, &self.path)
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// The place and the number in the origin of an epoch.
fn numbered(origin: &str) -> Option<(&str, u32)> {
    let (place, number) = origin.rsplit_once('/')?;
    Some((place, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use metering_log::keys::PrivateKey;
    use metering_log::note::{KeyName, NoteSigner};
    use metering_log::tree::{Leaves, consistency_proof, read_root};

    use super::super::test_epoch::epoch;
    use super::*;

    fn leaves(texts: &[&str]) -> Vec<TreeHash> {
        texts.iter().map(|text| TreeHash::leaf(text.as_bytes())).collect()
    }

    fn root(leaves: &[TreeHash]) -> TreeHash {
        read_root(&Leaves(leaves), leaves.len() as u64).unwrap()
    }

    #[tokio::test]
    async fn only_what_continues_the_last_checkpoint_is_signed() {
        let folder = tempfile::tempdir().unwrap();
        let key_file = folder.path().join("log.pem");
        let mut last = LastSigned::read([key_file.as_path()]).unwrap();
        let log = leaves(&["a", "b", "c", "d", "e"]);
        let of = |leaves: &[TreeHash]| epoch(leaves.len() as u64, *root(leaves).as_bytes());
        assert_eq!(last.size(&of(&log)).unwrap(), 0, "nothing was signed yet");

        let head = Checkpoint::new("api.example.com/log/2", 3, root(&log[..3])).unwrap();
        let signer = NoteSigner::new(KeyName::new("api.example.com/log/2").unwrap(), PrivateKey::from_seed(&[7; 32]));
        last.remember(&SignedCheckpoint::sign(head, &signer).unwrap()).await.unwrap();
        assert!(folder.path().join("log.pem.last").exists());
        // The same after a restart.
        for last in [last, LastSigned::read([key_file.as_path()]).unwrap()] {
            let proof = consistency_proof(&Leaves(&log), last.size(&of(&log)).unwrap(), 5).unwrap();
            last.check(&of(&log), &proof).unwrap();
            last.check(&of(&log[..3]), &[]).unwrap();

            let shorter = last.size(&of(&log[..2])).unwrap_err().to_string();
            assert!(shorter.contains("had 3 entries") && shorter.contains("metering admin log new-epoch"), "{shorter}");
            let other = leaves(&["a", "b", "X", "d", "e"]);
            assert!(last.size(&of(&other[..3])).unwrap_err().to_string().contains("different entries"));
            let proof = consistency_proof(&Leaves(&other), 3, 5).unwrap();
            assert!(last.check(&of(&other), &proof).unwrap_err().to_string().contains("different entries"));

            // A later epoch starts afresh; an earlier one means an old backup.
            let named = |origin: &str| LogEpoch { origin: origin.to_owned(), ..of(&log[..1]) };
            assert_eq!(last.size(&named("api.example.com/log/3")).unwrap(), 0);
            assert_eq!(last.size(&named("other.example.com/log/1")).unwrap(), 0);
            assert!(last.size(&named("api.example.com/log/1")).is_err());
        }
    }

    #[tokio::test]
    async fn what_another_node_published_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let mut last = LastSigned::read([folder.path().join("log.pem").as_path()]).unwrap();
        let log = leaves(&["a", "b", "c", "d", "e"]);
        let open = epoch(5, *root(&log).as_bytes());
        let published = |root: TreeHash| {
            let signer =
                NoteSigner::new(KeyName::new("api.example.com/log/2").unwrap(), PrivateKey::from_seed(&[7; 32]));
            SignedCheckpoint::sign(Checkpoint::new("api.example.com/log/2", 3, root).unwrap(), &signer).unwrap()
        };
        let proof = consistency_proof(&Leaves(&log), 3, 5).unwrap();
        last.follow(&published(root(&log[1..4])), &open, &proof).await.unwrap();
        assert_eq!(last.size(&open).unwrap(), 0, "it belongs to another tree");
        last.follow(&published(root(&log[..3])), &open, &proof).await.unwrap();
        assert_eq!(last.size(&open).unwrap(), 3);
        assert!(last.size(&epoch(2, *root(&log[..2]).as_bytes())).is_err(), "an old backup");
    }

    #[tokio::test]
    async fn what_either_key_signed_last_binds_both() {
        let folder = tempfile::tempdir().unwrap();
        let [old, new] = ["old.pem", "new.pem"].map(|name| folder.path().join(name));
        let log = leaves(&["a", "b", "c", "d", "e"]);
        let head = |origin: &str, size: usize| {
            let signer = NoteSigner::new(KeyName::new(origin).unwrap(), PrivateKey::from_seed(&[7; 32]));
            let head = Checkpoint::new(origin, size as u64, root(&log[..size])).unwrap();
            SignedCheckpoint::sign(head, &signer).unwrap()
        };
        let of = |size: usize| epoch(size as u64, *root(&log[..size]).as_bytes());
        let both = || LastSigned::read([new.as_path(), old.as_path()]).unwrap();

        // The rotation begins: the new key has signed nothing.
        LastSigned::read([old.as_path()]).unwrap().remember(&head("api.example.com/log/2", 3)).await.unwrap();
        assert!(both().size(&of(2)).is_err(), "an old backup");
        assert_eq!(both().size(&of(4)).unwrap(), 3);
        assert!(!both().is_everywhere(), "the new key must know it too");
        both().remember(&head("api.example.com/log/2", 4)).await.unwrap();
        assert!(both().is_everywhere());
        // It ends, or the operator goes back: each file alone has what both keys signed.
        for file in [&old, &new] {
            let last = LastSigned::read([file.as_path()]).unwrap();
            assert!(last.size(&of(3)).is_err());
            assert_eq!(last.size(&of(5)).unwrap(), 4);
        }
        // Only one of the files was written: use the later checkpoint of the two.
        LastSigned::read([old.as_path()]).unwrap().remember(&head("api.example.com/log/2", 5)).await.unwrap();
        assert!(both().size(&of(4)).is_err());
        // A new key file that was used with another log before does not hide the old one's checkpoint.
        LastSigned::read([new.as_path()]).unwrap().remember(&head("test.example.com/log/7", 1)).await.unwrap();
        assert!(both().size(&of(4)).is_err());
        assert_eq!(both().size(&of(5)).unwrap(), 5);
    }

    #[test]
    fn a_damaged_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("log.pem.last"), "rubbish").unwrap();
        let problem = LastSigned::read([folder.path().join("log.pem").as_path()]).unwrap_err().to_string();
        assert!(problem.contains("log.pem.last: not a signed note"), "{problem}");
    }
}
