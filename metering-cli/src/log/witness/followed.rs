//! The logs that a witness follows, with the checkpoint of each that it cosigned last.
//!
//! Deciding and saving are one step per log: a cosignature is sent only once the file that records it is on disk.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use metering_log::checkpoint::Policy;
use metering_log::note::VerifierKey;
use metering_log::witness::{Refusal, Seen, Witness, WitnessedLog, checkpoint_path};

use crate::failure::Failure;
use crate::log::kept;
use crate::new_file::{directory_of, sync_directory};
use crate::output::notice;

/// A witness with its logs.
#[derive(Debug)]
pub(crate) struct FollowedLogs {
    witness: Witness,
    by_origin: BTreeMap<String, FollowedLog>,
    /// Two processes could cosign two checkpoints that contradict each other.
    _lock: File,
}

#[derive(Debug)]
struct FollowedLog {
    keys: Vec<VerifierKey>,
    file: PathBuf,
    /// The contents of the file. Locked while deciding on a checkpoint.
    latest: Mutex<Option<Seen>>,
}

/// Why a checkpoint is not cosigned.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotCosigned {
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The witness cannot save it. It may be submitted again.
    #[error(transparent)]
    NotKept(#[from] Failure),
}

impl FollowedLogs {
    /// Follows the logs that these keys are named after, starting from the checkpoints in the folder.
    ///
    /// # Errors
    /// When another process uses the folder, it cannot be written, or a file in it is damaged.
    pub(crate) fn open(witness: Witness, keys: Vec<VerifierKey>, folder: &Path) -> Result<Self, Failure> {
        let lock = locked(folder)?;
        let mut by_origin = BTreeMap::<String, FollowedLog>::new();
        for (origin, keys) in of_each_log(keys) {
            let file = folder.join(checkpoint_path(&origin));
            fs::create_dir_all(directory_of(&file)).map_err(|error| cannot_write(folder, &error))?;
            let kept = kept::read(&file, &Policy::new(origin.as_str(), keys.clone()));
            let advice = "After either, use another key: a witness must not forget what it cosigned";
            let kept = kept.map_err(|failure| failure.and(advice))?;
            let latest = Mutex::new(kept.map(|kept| Seen { size: kept.size(), root: kept.root() }));
            by_origin.insert(origin, FollowedLog { keys, file, latest });
        }
        // After a power cut, a file is lost if the name of its folder is.
        let synced = sync_directory(folder).and_then(|()| sync_directory(directory_of(folder)));
        synced.map_err(|error| cannot_write(folder, &error))?;
        Ok(Self { witness, by_origin, _lock: lock })
    }

    /// Decides on the body of `POST /add-checkpoint`, and saves the checkpoint if it is cosigned. Returns the body of
    /// the response. Blocks while another checkpoint of the same log is being decided on, and while the file system
    /// blocks.
    ///
    /// # Errors
    /// When the checkpoint is refused, or cannot be saved.
    pub(crate) fn add_checkpoint(&self, body: &[u8], now_seconds: u64) -> Result<String, NotCosigned> {
        let body = std::str::from_utf8(body).map_err(|_| Refusal::BadRequest("the body is not UTF-8"))?;
        let mut locked = None;
        let follows = |origin: &str| {
            let log = self.by_origin.get(origin)?;
            // Even after a panic, this matches the file, because it is updated last.
            let latest = log.latest.lock().unwrap_or_else(PoisonError::into_inner);
            let (_, latest) = locked.insert((log, latest));
            Some(WitnessedLog { keys: log.keys.clone(), latest: **latest })
        };
        let decided = self.witness.add_checkpoint(body, follows, now_seconds);
        // The other refusals happen in normal operation too.
        if let (Err(refusal @ Refusal::Inconsistent), Some((log, _))) = (&decided, &locked) {
            notice(&format!("Not cosigned: {refusal}. The log's key is {}", log.keys[0]));
        }
        let accepted = decided?;
        let Some((log, mut latest)) = locked else {
            return Err(Refusal::UnknownLog(accepted.checkpoint.checkpoint().origin().to_owned()).into());
        };
        if *latest != Some(accepted.seen) {
            kept::write(&log.file, &accepted.checkpoint.to_string())?;
            *latest = Some(accepted.seen);
        }
        Ok(accepted.body)
    }

    /// The file with the checkpoint that is served at a path, which begins with a slash.
    pub(crate) fn file(&self, path: &str) -> Option<&Path> {
        let path = path.strip_prefix('/')?;
        let mut logs = self.by_origin.iter();
        logs.find(|(origin, _)| checkpoint_path(origin) == path).map(|(_, log)| log.file.as_path())
    }
}

/// The keys by the log that they are named after.
fn of_each_log(keys: Vec<VerifierKey>) -> BTreeMap<String, Vec<VerifierKey>> {
    let mut logs = BTreeMap::<String, Vec<VerifierKey>>::new();
    for key in keys {
        logs.entry(key.name().to_string()).or_default().push(key);
    }
    logs
}

/// Creates the folder if it does not exist, and locks it until the returned file is dropped.
fn locked(folder: &Path) -> Result<File, Failure> {
    let failed = |error: io::Error| cannot_write(folder, &error);
    fs::create_dir_all(folder).map_err(failed)?;
    let lock = File::create(folder.join("lock")).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(fs::TryLockError::WouldBlock) => {
            Err(Failure::TryLater(format!("another witness is using {}", folder.display())))
        }
        Err(fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}

fn cannot_write(folder: &Path, error: &io::Error) -> Failure {
    Failure::Failed(format!("cannot write in {}: {error}", folder.display()))
}
