//! Has witnesses cosign checkpoints (C2SP `tlog-witness`, `add-checkpoint`).

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, StatusCode};
use metering_core::Clock;
use metering_core::store::LogEpoch;
use metering_log::checkpoint::SignedCheckpoint;
use metering_log::note::NoteSignature;
use metering_log::tree::TreeHash;
use metering_log::witness::AddCheckpoint;
use metering_proof::LogReader;
use tokio::time::{Instant, timeout};

use crate::config::{Config, LogWitness};
use crate::webhooks::WebhookClient;

/// How long a witness may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a witness that did not cosign is left alone.
const PAUSE: Duration = Duration::from_secs(10);
/// How much of an unexpected response is logged, in bytes.
const SHOWN: usize = 200;

/// Proves that the log only grew.
#[async_trait]
pub(super) trait ConsistencyProofs: Send + Sync {
    /// The proof from the log of `old` entries to that of `new`.
    async fn prove(&self, old: u64, new: u64) -> Result<Vec<TreeHash>, String>;
}

/// Proofs from an epoch in the store.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredProofs<'a> {
    pub(super) reader: &'a LogReader,
    pub(super) epoch: &'a LogEpoch,
}

#[async_trait]
impl ConsistencyProofs for StoredProofs<'_> {
    async fn prove(&self, old: u64, new: u64) -> Result<Vec<TreeHash>, String> {
        self.reader.prove_consistency(self.epoch, old, new).await.map_err(|error| error.to_string())
    }
}

/// The witnesses of the configuration.
#[derive(Debug)]
pub(super) struct Witnesses {
    client: WebhookClient,
    clock: Arc<dyn Clock>,
    known: Vec<Known>,
}

/// A witness and its last known state.
#[derive(Debug)]
struct Known {
    witness: LogWitness,
    /// The size that it cosigned last, as far as this process knows.
    size: u64,
    paused_until: Option<Instant>,
}

impl Witnesses {
    /// # Errors
    /// When a witness or the certificates cannot be used.
    pub(super) fn new(config: &Config, clock: &Arc<dyn Clock>) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let client = WebhookClient::for_operator(config.webhooks.ca_file.as_deref())?;
        let known = |witness| Known { witness, size: 0, paused_until: None };
        let known = config.log.checked_witnesses()?.into_iter().map(known).collect();
        Ok(Self { client, clock: Arc::clone(clock), known })
    }

    /// Adds the cosignatures of all witnesses that respond in time, and returns how many there are.
    pub(super) async fn cosign(&mut self, signed: &mut SignedCheckpoint, proofs: &dyn ConsistencyProofs) -> usize {
        let (client, clock, checkpoint) = (&self.client, &*self.clock, &*signed);
        let asked = self.known.iter_mut().map(|known| known.cosign(client, clock, checkpoint, proofs));
        let cosigned: Vec<NoteSignature> = join_all(asked).await.into_iter().flatten().collect();
        let count = cosigned.len();
        cosigned.into_iter().for_each(|signature| signed.note_mut().add(signature));
        count
    }

    /// Starts over with a new log, which the witnesses have not seen yet.
    pub(super) fn forget(&mut self) {
        for known in &mut self.known {
            known.size = 0;
        }
    }
}

impl Known {
    async fn cosign(
        &mut self,
        client: &WebhookClient,
        clock: &dyn Clock,
        signed: &SignedCheckpoint,
        proofs: &dyn ConsistencyProofs,
    ) -> Option<NoteSignature> {
        if self.paused_until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let asked = timeout(TIMEOUT, self.ask(client, clock, signed, proofs)).await;
        match asked.unwrap_or_else(|_| Err("there was no response in 5 seconds".to_owned())) {
            Ok(signature) => {
                self.size = signed.checkpoint().size();
                if self.paused_until.take().is_some() {
                    tracing::info!(witness = %self.witness.name, "a witness cosigns the log again");
                }
                Some(signature)
            }
            Err(problem) => {
                if self.paused_until.is_none() {
                    tracing::warn!(witness = %self.witness.name, %problem, "a witness did not cosign the log; trying again every 10 seconds");
                }
                self.paused_until = Some(Instant::now() + PAUSE);
                None
            }
        }
    }

    async fn ask(
        &mut self,
        client: &WebhookClient,
        clock: &dyn Clock,
        signed: &SignedCheckpoint,
        proofs: &dyn ConsistencyProofs,
    ) -> Result<NoteSignature, String> {
        let size = signed.checkpoint().size();
        // Retries once if the witness names a different size to start from.
        for _ in 0..2 {
            let proof = proofs.prove(self.size, size).await?;
            let request = AddCheckpoint { old_size: self.size, proof, checkpoint: signed.clone() };
            let body = Bytes::from(request.to_string());
            let response = client.post(&self.witness.url, HeaderMap::new(), body, clock.now()).await;
            let response = response.map_err(|failure| failure.to_string())?;
            let text = String::from_utf8_lossy(&response.body);
            match response.status {
                StatusCode::OK => return self.cosignature(signed, &text),
                StatusCode::CONFLICT => {
                    self.size =
                        text.trim_end().parse().map_err(|_| "409 without the size that it cosigned".to_owned())?;
                    if self.size > size {
                        let cosigned = self.size;
                        return Err(format!(
                            "it cosigned {cosigned} entries, and the log has {size}: was a backup restored?"
                        ));
                    }
                }
                status => {
                    let shown: String = text.chars().take(SHOWN).collect();
                    return Err(format!("the response was {status}: {shown:?}"));
                }
            }
        }
        Err("it named two different sizes that it cosigned".to_owned())
    }

    /// Its own signature in the body of a response.
    fn cosignature(&self, signed: &SignedCheckpoint, body: &str) -> Result<NoteSignature, String> {
        let key = &self.witness.key;
        let mut signatures = body.lines().filter_map(|line| line.parse::<NoteSignature>().ok());
        let own =
            signatures.find(|signature| key.names(signature)).ok_or("its response has no signature by its vkey")?;
        match key.verify(signed.note().text(), own.signature()) {
            Ok(_) => Ok(own),
            Err(_) => Err("its signature is not valid".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
