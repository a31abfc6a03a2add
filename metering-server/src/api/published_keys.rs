//! The published public keys: serialized and compressed once, not for each request.
//!
//! The keys of receipts change with a reload, after which nothing is kept. The epochs of the log are in the store, where the
//! command line begins new ones.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metering_core::wire::ReceiptKeysDocument;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::http::{Document, Problem};

/// How long a new epoch may be missing. Caches keep the document for longer.
const AGE: Duration = Duration::from_secs(1);

/// The document with the public keys, once it was made.
#[derive(Debug, Default)]
pub(crate) struct PublishedKeys {
    state: Mutex<State>,
    /// How often the keys could not be read.
    failures: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    kept: Option<Kept>,
    /// Why the keys could not be read last.
    problem: Option<Problem>,
}

#[derive(Debug)]
struct Kept {
    /// `None` if there are no keys.
    document: Option<Document>,
    /// The log that receipts of this process named then.
    running: Option<String>,
    until: Instant,
}

impl PublishedKeys {
    /// The document; `None` if there are no keys. They are read if that was long ago, or if receipts name another log
    /// since: `running`. Concurrent requests wait for the same document, or fail with it: a store that fails slowly must
    /// not be tried once for each of them in turn.
    ///
    /// # Errors
    /// Those of `read`.
    pub(super) async fn document(
        &self,
        running: Option<String>,
        read: impl Future<Output = Result<ReceiptKeysDocument, Problem>>,
    ) -> Result<Option<Document>, Problem> {
        let failures = self.failures.load(Ordering::Relaxed);
        let mut state = self.state.lock().await;
        let State { kept, problem } = &mut *state;
        if let Some(kept) = kept.as_ref().filter(|kept| kept.running == running && Instant::now() < kept.until) {
            return Ok(kept.document.clone());
        }
        if let Some(problem) = problem.as_ref().filter(|_| self.failures.load(Ordering::Relaxed) != failures) {
            return Err(problem.clone());
        }
        let keys = read.await.inspect_err(|found| {
            *problem = Some(found.clone());
            self.failures.fetch_add(1, Ordering::Relaxed);
        })?;
        let document = if keys.keys.is_empty() && keys.logs.is_empty() {
            None
        } else {
            let json = serde_json::to_vec(&keys).map_err(|error| {
                tracing::error!(%error, "could not serialize the keys as JSON");
                Problem::internal()
            })?;
            let before = kept.take().and_then(|kept| kept.document).filter(|document| document.body()[..] == json[..]);
            Some(before.unwrap_or_else(|| Document::new("application/jwk-set+json", json)))
        };
        *kept = Some(Kept { document: document.clone(), running, until: Instant::now() + AGE });
        Ok(document)
    }
}

#[cfg(test)]
mod tests {
    use metering_core::Timestamp;
    use metering_core::wire::{ErrorCode, LogDocument};

    use super::*;

    fn epoch(number: u32) -> LogDocument {
        LogDocument {
            epoch: number,
            origin: format!("log.example/{number}"),
            vkey: "key".to_owned(),
            previous_vkeys: Vec::new(),
            url: format!("https://log.example/log/{number}"),
            began_at: Timestamp::from_unix_millis(0),
        }
    }

    /// The epochs that are published while the store has these, and receipts name this log.
    async fn published(keys: &PublishedKeys, running: Option<&str>, stored: &[u32]) -> Option<Vec<u32>> {
        let logs = stored.iter().copied().map(epoch).collect();
        let read = async { Ok(ReceiptKeysDocument { keys: Vec::new(), logs }) };
        let document = keys.document(running.map(str::to_owned), read).await.unwrap()?;
        let document: ReceiptKeysDocument = serde_json::from_slice(document.body()).unwrap();
        Some(document.logs.into_iter().map(|log| log.epoch).collect())
    }

    #[tokio::test(start_paused = true)]
    async fn keys_are_read_again_after_a_while_and_when_receipts_name_another_log() {
        let keys = PublishedKeys::default();
        assert_eq!(published(&keys, None, &[]).await, None);
        assert_eq!(published(&keys, None, &[1]).await, None, "it was read just now");
        tokio::time::advance(AGE).await;
        assert_eq!(published(&keys, None, &[1]).await, Some(vec![1]));
        assert_eq!(published(&keys, None, &[1, 2]).await, Some(vec![1]));
        assert_eq!(published(&keys, Some("log.example/2"), &[1, 2]).await, Some(vec![1, 2]));
        tokio::time::advance(AGE).await;
        let failed = async { Err(Problem::new(ErrorCode::StorageUnavailable, "The store fails.")) };
        assert!(keys.document(Some("log.example/2".to_owned()), failed).await.is_err());
        assert_eq!(published(&keys, Some("log.example/2"), &[1, 2, 3]).await, Some(vec![1, 2, 3]));
    }

    async fn failing(reads: &AtomicU64) -> Result<ReceiptKeysDocument, Problem> {
        reads.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        Err(Problem::new(ErrorCode::StorageUnavailable, "The store fails."))
    }

    #[tokio::test]
    async fn requests_that_waited_for_a_failed_read_fail_with_it() {
        let (keys, reads) = (PublishedKeys::default(), AtomicU64::new(0));
        let both = tokio::join!(keys.document(None, failing(&reads)), keys.document(None, failing(&reads)));
        let codes = [both.0.unwrap_err().code(), both.1.unwrap_err().code()];
        assert_eq!(codes, [ErrorCode::StorageUnavailable; 2]);
        assert_eq!(reads.load(Ordering::Relaxed), 1);
        assert!(keys.document(None, failing(&reads)).await.is_err());
        assert_eq!(reads.load(Ordering::Relaxed), 2, "a later request tries again");
    }
}
