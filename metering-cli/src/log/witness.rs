//! `metering log witness`: cosigns a log's checkpoint, if it continues what was cosigned before.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use metering_client::ServiceUrl;
use metering_config::server::read_key_ring;
use metering_core::{Clock, SystemClock};
use metering_log::checkpoint::SignedCheckpoint;
use metering_log::note::{Cosigner, KeyName};
use metering_log::tree::{TreeHash, consistency_proof, consistency_tiles};
use metering_log::witness::{AddCheckpoint, Refusal, Seen, Witness, WitnessedLog, checkpoint_path};

use crate::failure::Failure;
use crate::log::kept;
use crate::log::remote::RemoteLog;
use crate::log::trust::LogKeys;
use crate::output::notice;

/// Cosign a log's checkpoint as a witness, unless the log was forked or rewritten.
///
/// Fetches the checkpoint and the proof that it continues what this witness cosigned before, keeps it, and prints it with
/// the cosignature (`cosignature/v1`). Run it regularly. A web server that serves the folder of --keep makes the
/// checkpoints public at the paths of C2SP tlog-witness. The first run also says, on stderr, by which verifier key others
/// know the witness. Use the key for nothing else.
#[derive(Debug, Args)]
#[command(after_help = "\
To make a key: openssl genpkey -algorithm ed25519 -out witness.pem, and set its mode to 600.

Examples:
  metering log witness https://example.com/log --name example.org/witness --key witness.pem --keep witnessed \
  --log-key example.com/log+9be5d3c6+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c")]
pub(crate) struct WitnessArgs {
    /// The URL of the log: its checkpoint is at URL/checkpoint.
    #[arg(value_name = "URL")]
    url: ServiceUrl,
    #[command(flatten)]
    log: LogKeys,
    /// The name of this witness, such as a URL of yours without https://.
    #[arg(long, value_name = "NAME")]
    name: KeyName,
    /// The file with the private key of this witness (Ed25519, PEM or JWK). Others must not be able to read it.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The folder for the checkpoints that were cosigned.
    #[arg(long, value_name = "FOLDER")]
    keep: PathBuf,
}

impl WitnessArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let policy = self.log.policy()?;
        let keys = read_key_ring(&self.key).map_err(Failure::Failed)?;
        let cosigner = Cosigner::new(self.name, keys.signing().clone());
        let verifier = cosigner.verifier().to_string();
        let witness = Witness::new(cosigner);
        let file = self.keep.join(checkpoint_path(policy.origin()));
        let folder = file.parent().unwrap_or(&self.keep);
        // Until this run ends: two at once could cosign two checkpoints that contradict each other.
        let _lock = locked(folder)?;
        let old = kept::read(&file, &policy)?.map(|kept| Seen { size: kept.size(), root: kept.root() });

        let log = RemoteLog::open(self.url)?;
        let text = log.checkpoint().await?;
        let checkpoint = text.parse::<SignedCheckpoint>().map_err(|error| Failure::Discrepancies(error.to_string()))?;
        let is_first = old.is_none();
        let old_size = old.map_or(0, |old| old.size);
        let new_size = checkpoint.checkpoint().size();
        let proof = prove(&log, old_size, new_size).await?;
        let request = AddCheckpoint { old_size, proof, checkpoint }.to_string();

        let follows =
            |origin: &str| (origin == policy.origin()).then(|| WitnessedLog { keys: self.log.keys(), latest: old });
        let now = u64::try_from(SystemClock.now().unix_seconds()).unwrap_or_default();
        let accepted = witness.add_checkpoint(&request, follows, now).map_err(refused)?;
        let cosigned = accepted.checkpoint.to_string();
        kept::write(&file, &cosigned)?;
        if is_first {
            notice(&format!("The verifier key of this witness is {verifier}"));
        }
        Ok(write!(out, "{cosigned}")?)
    }
}

/// The log's proof that it only grew. A log that went back has none; the witness refuses that.
async fn prove(log: &RemoteLog, old: u64, new: u64) -> Result<Vec<TreeHash>, Failure> {
    let tiles = log.tiles(consistency_tiles(old, new)).await?;
    if old > new {
        return Ok(Vec::new());
    }
    consistency_proof(&tiles, old, new).map_err(|error| Failure::Discrepancies(error.to_string()))
}

fn refused(refusal: Refusal) -> Failure {
    let problem = format!("not cosigned: {refusal}");
    match refusal {
        Refusal::NotSigned(_) => Failure::Unauthorized(problem),
        Refusal::UnknownLog(_) => Failure::NotFound(problem),
        // Here the old size is what was cosigned, so a larger one means that the log went back.
        Refusal::BadRequest(_) | Refusal::Conflict { .. } | Refusal::Inconsistent => Failure::Discrepancies(problem),
    }
}

/// The folder, locked until the file is dropped.
fn locked(folder: &Path) -> Result<File, Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("cannot write in {}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(failed)?;
    let lock = File::create(folder.join("lock")).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(fs::TryLockError::WouldBlock) => {
            Err(Failure::TryLater(format!("another run is using {}", folder.display())))
        }
        Err(fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}
