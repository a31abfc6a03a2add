//! The log from this process's point of view: where it is, and which keys sign it.

use std::sync::Arc;

use metering_core::store::LogEpoch;
use metering_core::wire::LogDocument;
use metering_core::{FullStore, StoreError};
use metering_log::note::{KeyName, NoteSigner, SignatureKind, VerifierKey};
use metering_proof::LogReader;
use tokio::sync::{Semaphore, watch};

use crate::config::{Config, ConfigError, LogKeys};

/// How many tiles are read concurrently. A tile that is not stored in its served form takes up to a millisecond to
/// read.
const READS_MAX: usize = 8;

/// This process's view of the log of postings.
#[derive(Debug)]
pub(crate) struct PostingLog {
    pub(super) store: Arc<dyn FullStore>,
    pub(super) reader: LogReader,
    keys: Option<LogKeys>,
    pub(super) is_public: bool,
    public_url: String,
    /// The origin of the epoch that this process appends to, or would if it had the lease.
    pub(super) running: watch::Sender<Option<String>>,
    pub(super) reads: Semaphore,
}

impl PostingLog {
    /// # Errors
    /// When the keys cannot be used.
    pub(crate) fn new(config: &Config, store: &Arc<dyn FullStore>) -> Result<Self, ConfigError> {
        Ok(Self {
            store: Arc::clone(store),
            reader: LogReader::new(Arc::clone(store) as _),
            keys: config.log.keys()?,
            is_public: config.log.public,
            public_url: config.public_url.as_deref().unwrap_or_default().trim_end_matches('/').to_owned(),
            running: watch::Sender::new(None),
            reads: Semaphore::new(READS_MAX),
        })
    }

    /// The origin of the open log, for receipts.
    pub(crate) fn running(&self) -> watch::Receiver<Option<String>> {
        self.running.subscribe()
    }

    /// The epochs with their verifier keys; none if this process does not have the keys.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn documents(&self) -> Result<Vec<LogDocument>, StoreError> {
        let Some(keys) = &self.keys else { return Ok(Vec::new()) };
        let epochs = self.store.log_epochs().await?;
        Ok(epochs.into_iter().filter_map(|epoch| document(keys, &self.public_url, epoch)).collect())
    }

    /// The keys that sign the checkpoints of an epoch: the current one, and during a rotation the previous one. `None`
    /// if its origin cannot be the name of a key.
    pub(super) fn signers(&self, epoch: &LogEpoch) -> Option<Vec<NoteSigner>> {
        let name = KeyName::new(epoch.origin.as_str()).ok()?;
        let keys = self.keys.as_ref()?.signing();
        Some(keys.map(|key| NoteSigner::new(name.clone(), key.clone())).collect())
    }
}

fn document(keys: &LogKeys, public_url: &str, epoch: LogEpoch) -> Option<LogDocument> {
    let name = KeyName::new(epoch.origin.as_str()).ok()?;
    let vkey = |key| VerifierKey::new(name.clone(), SignatureKind::Note, key).to_string();
    let mut vkeys = keys.published().into_iter().map(vkey);
    Some(LogDocument {
        epoch: epoch.number,
        vkey: vkeys.next()?,
        previous_vkeys: vkeys.collect(),
        url: format!("{public_url}/log/{}", epoch.number),
        origin: epoch.origin,
        began_at: epoch.began_at,
    })
}

#[cfg(test)]
mod tests {
    use metering_log::keys::{KeyRing, PrivateKey};

    use super::super::test_epoch::epoch;
    use super::*;

    #[test]
    fn an_epoch_is_published_with_the_verifier_keys_of_now_and_before() {
        let [old, new] = [1, 2].map(|seed| PrivateKey::from_seed(&[seed; 32]));
        let file = format!("{}{}", old.public().to_pem().unwrap(), *new.to_pem().unwrap());
        let keys = LogKeys::new(KeyRing::parse([file.as_str()]).unwrap(), None);
        let document = document(&keys, "https://api.example.com", epoch(3, [0; 32])).unwrap();
        let vkey = |key: &PrivateKey| {
            let name = KeyName::new("api.example.com/log/2").unwrap();
            NoteSigner::new(name, key.clone()).verifier().to_string()
        };
        assert_eq!((document.epoch, document.vkey), (2, vkey(&new)));
        assert_eq!(document.previous_vkeys, [vkey(&old)]);
        assert_eq!(document.url, "https://api.example.com/log/2");
    }
}
