//! The last checkpoint that was signed, kept next to the key: `KEY_FILE.last`. If an old backup is restored, its log is
//! shorter than the one that others have seen, and signing it would create a fork.

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

/// The last checkpoint that was signed with a key file.
#[derive(Debug)]
pub(super) struct LastSigned {
    file: PathBuf,
    /// Written before it replaces the file. Each process has its own: several may share the key file.
    temporary: PathBuf,
    checkpoint: Option<Checkpoint>,
}

impl LastSigned {
    /// Reads the file next to `key_file`. Blocks while the file system does.
    ///
    /// # Errors
    /// When it cannot be read, or is not a checkpoint.
    pub(super) fn read(key_file: &Path) -> io::Result<Self> {
        let file = with_suffix(key_file, ".last");
        let about = |error: &dyn std::fmt::Display| io::Error::other(format!("{}: {error}", file.display()));
        let damaged = |error: &dyn std::fmt::Display| {
            about(&format_args!(
                "{error}. This file detects old backups of the database. If the database is current, move the file away"
            ))
        };
        let checkpoint = match fs::read_to_string(&file) {
            Ok(text) => Some(text.parse::<SignedCheckpoint>().map_err(|error| damaged(&error))?.checkpoint().clone()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(about(&error)),
        };
        let mut own = [0; 8];
        SystemRandomness.fill(&mut own);
        let temporary = with_suffix(key_file, &format!(".last.{}", hex::encode(own)));
        Ok(Self { file, temporary, checkpoint })
    }

    /// The size of the last checkpoint of this epoch, from which [`LastSigned::check`] needs a consistency proof.
    ///
    /// # Errors
    /// When the epoch is shorter, or as long with other entries, or when a later one was signed.
    pub(super) fn size(&self, epoch: &LogEpoch) -> Result<u64, Rollback> {
        let Some(last) = &self.checkpoint else { return Ok(0) };
        if last.origin() != epoch.origin {
            return match (numbered(last.origin()), numbered(&epoch.origin)) {
                (Some((place, later)), Some((same, number))) if place == same && later > number => Err(Rollback {
                    what: format!("the log {} was signed, and the store has {}", last.origin(), epoch.origin),
                }),
                // From an earlier epoch, or from when the service had a different URL.
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
        let Some(last) = self.checkpoint.as_ref().filter(|last| last.origin() == epoch.origin) else { return Ok(()) };
        let root = TreeHash::from_bytes(epoch.root);
        verify_consistency(last.size(), last.root(), epoch.size, root, proof)
            .map_err(|_| Rollback::other_entries(epoch))
    }

    /// Remembers a checkpoint that another node published, if the proof leads from it to the epoch. This node may sign
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
    /// When it cannot be written. It is remembered until the process ends.
    pub(super) async fn remember(&mut self, signed: &SignedCheckpoint) -> io::Result<()> {
        self.checkpoint = Some(signed.checkpoint().clone());
        let (temporary, file, text) = (self.temporary.clone(), self.file.clone(), signed.to_string());
        let written = spawn_blocking(move || {
            let mut new = File::create(&temporary)?;
            new.write_all(text.as_bytes())?;
            // Otherwise a power cut may leave an empty file under the new name, and the server would not start.
            new.sync_data()?;
            fs::rename(&temporary, &file)
        });
        written.await.map_err(io::Error::other)?
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
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
        let mut last = LastSigned::read(&key_file).unwrap();
        let log = leaves(&["a", "b", "c", "d", "e"]);
        let of = |leaves: &[TreeHash]| epoch(leaves.len() as u64, *root(leaves).as_bytes());
        assert_eq!(last.size(&of(&log)).unwrap(), 0, "nothing was signed yet");

        let head = Checkpoint::new("api.example.com/log/2", 3, root(&log[..3])).unwrap();
        let signer = NoteSigner::new(KeyName::new("api.example.com/log/2").unwrap(), PrivateKey::from_seed(&[7; 32]));
        last.remember(&SignedCheckpoint::sign(head, &signer).unwrap()).await.unwrap();
        assert!(folder.path().join("log.pem.last").exists());
        // The same after a restart.
        for last in [last, LastSigned::read(&key_file).unwrap()] {
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
        let mut last = LastSigned::read(&folder.path().join("log.pem")).unwrap();
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

    #[test]
    fn a_damaged_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("log.pem.last"), "rubbish").unwrap();
        let problem = LastSigned::read(&folder.path().join("log.pem")).unwrap_err().to_string();
        assert!(problem.contains("log.pem.last: not a signed note"), "{problem}");
    }
}
