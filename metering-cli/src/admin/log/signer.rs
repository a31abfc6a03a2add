//! An epoch's signing key and URL: together they determine its verifier key.

use std::path::PathBuf;

use clap::Args;
use metering_config::server::read_key_ring;
use metering_core::store::log_origin;
use metering_log::keys::PublicKey;
use metering_log::note::{KeyName, SignatureKind, VerifierKey};
use serde::Deserialize;

use crate::admin::key_file;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::new_file::Owner;

/// The key and the public URL of a log.
#[derive(Debug, Args)]
pub(super) struct Signer {
    /// The file with the key that signs the log. It is created if it does not exist.
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// The URL under which clients reach the service; public_url of the configuration by default.
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Configured {
    public_url: Option<String>,
}

impl Signer {
    /// The origin of an epoch. It identifies the log to clients, so it cannot change later.
    pub(super) fn origin(&self, session: &Session, epoch: u32) -> Result<String, Failure> {
        let url = match &self.public_url {
            Some(url) => url.clone(),
            None => session.sources().read::<Configured>()?.public_url.ok_or_else(|| {
                Failure::Usage("no public URL: name it with --public-url, or a configuration with --config".to_owned())
            })?,
        };
        let unfit = "cannot be the URL of a log: it must be an http(s) URL without spaces or plus signs";
        log_origin(&url, epoch).ok_or_else(|| Failure::Usage(format!("{url:?} {unfit}")))
    }

    /// Whether something with the file's name exists.
    pub(super) fn exists(&self) -> bool {
        self.file.symlink_metadata().is_ok()
    }

    /// The key in the file. If the file does not exist, it is created, and has this owner.
    pub(super) fn key_or_new(&self) -> Result<(PublicKey, Option<Owner>), Failure> {
        if !self.exists() {
            let (key, owner) = key_file::create(&self.file)?;
            return Ok((key, Some(owner)));
        }
        Ok((read_key_ring(&self.file).map_err(Failure::Failed)?.signing().public(), None))
    }
}

/// The verifier key of a log, which clients pin.
pub(super) fn verifier(origin: &str, key: PublicKey) -> Result<VerifierKey, Failure> {
    let name = KeyName::new(origin).map_err(|error| Failure::Usage(format!("{origin:?}: {error}")))?;
    Ok(VerifierKey::new(name, SignatureKind::Note, key))
}
