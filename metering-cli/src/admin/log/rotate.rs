//! `metering admin log rotate`.

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf, absolute};

use clap::Args;
use metering_config::server::read_key_ring;
use metering_log::checkpoint::Policy;
use serde::Serialize;

use super::signer::verifier;
use crate::admin::key_file;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::new_file::Owner;
use crate::output::{Format, write_json};
use crate::table::write_pairs;

/// Create a file with a new key for the log. Until all clients know it, the old key signs too.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints the new verifier key, and what to set in the configuration and when. While servers have both files, checkpoints
have the signatures of both keys, so clients that know either accept them. The old file is not changed. The new one also
has the public keys of the old one, so that earlier statements stay verifiable. It is readable by its owner only: if root
runs the command, the owner of its folder. A stolen key cannot be rotated like that:
begin a new epoch with `metering admin log new-epoch`, and name a file that does not exist yet.

Example:
  metering admin log rotate /var/lib/metering-log/log.pem /var/lib/metering-log/log-2027.pem")]
pub(super) struct RotateArgs {
    /// The file with the key that signs the log now: log.key_file of the servers.
    #[arg(value_name = "OLD_FILE")]
    old: PathBuf,
    /// The file to create, in a folder that the servers can write to. It must not exist.
    #[arg(value_name = "NEW_FILE")]
    new: PathBuf,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Serialize)]
struct Document {
    origin: String,
    verifier_key: String,
    previous_verifier_key: String,
    /// What to set as `log.key_file`.
    key_file: String,
    /// What to set as `log.previous_key_file`.
    previous_key_file: String,
}

impl RotateArgs {
    pub(super) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let store = session.database().await?.store();
        let Some(epoch) = store.log_epochs().await?.pop() else {
            return Err(Failure::NotFound("this store has no log: `metering admin log init` begins one".to_owned()));
        };
        let old = read_key_ring(&self.old).map_err(Failure::Failed)?;
        if self.new.symlink_metadata().is_ok() {
            let problem = "exists, and a key in it may be in use: name a file that does not exist";
            return Err(Failure::Conflict(format!("{} {problem}", self.new.display())));
        }
        let previous = verifier(&epoch.origin, old.signing().public())?;
        let known = Policy::new(epoch.origin.as_str(), vec![previous.clone()]);
        if epoch.checkpoint.as_ref().is_some_and(|(_, published)| known.open(published).is_err()) {
            let problem = "has another key than the one that signs the log: name log.key_file of the servers";
            return Err(Failure::Conflict(format!("{} {problem}", self.old.display())));
        }
        let (key, owner) = key_file::create_after(&self.new, &old.published())?;
        let document = Document {
            verifier_key: verifier(&epoch.origin, key)?.to_string(),
            previous_verifier_key: previous.to_string(),
            origin: epoch.origin,
            key_file: shown(&self.new),
            previous_key_file: shown(&self.old),
        };
        if self.format.json { write_json(out, &document) } else { document.write(out, owner) }
    }
}

impl Document {
    fn write(&self, out: &mut dyn Write, owner: Owner) -> Result<(), Failure> {
        let Self { origin, verifier_key, previous_verifier_key, key_file, previous_key_file } = self;
        writeln!(out, "Created {key_file}.{} Nothing is signed with it yet.\n", owner.note())?;
        let lines: [(&str, &dyn Display); 3] =
            [("Origin", origin), ("New verifier key", verifier_key), ("Old verifier key", previous_verifier_key)];
        write_pairs(out, &lines)?;
        // Strings of TOML have the same quotes and escapes as those of JSON.
        let quoted = |file: &str| serde_json::Value::from(file).to_string();
        let (key_file, previous) = (quoted(key_file), quoted(previous_key_file));
        writeln!(
            out,
            "\n1. Set this in the configuration of every server, and restart it. Checkpoints then have both signatures.\n\n\
             [log]\nkey_file = {key_file}\nprevious_key_file = {previous}\n\n\
             2. Give the new verifier key to everyone who follows the log: witnesses, auditors and customers.\n\
             3. When all of them have it, remove previous_key_file and restart the servers. Then delete\n   \
             {previous_key_file} and {previous_key_file}.last."
        )?;
        Ok(())
    }
}

/// The path for a configuration, which may be read in another folder.
fn shown(file: &Path) -> String {
    absolute(file).unwrap_or_else(|_| file.to_owned()).display().to_string()
}
