//! Appends to the log, signs its head and publishes it: one round a second, in every process that has the key. The node with
//! the lease does the work.

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use metering_core::store::LogEpoch;
use metering_core::{Clock, Randomness, StoreError, SystemRandomness};
use metering_log::checkpoint::{Checkpoint, SignedCheckpoint};
use metering_log::note::NoteSigner;
use metering_log::tree::TreeHash;
use metering_proof::{LogReadError, Sequencer, SequencerError, Stepped};
use tokio::time::{Instant, timeout};

use super::last_signed::{LastSigned, Rollback};
use super::posting_log::PostingLog;
use super::witnesses::{StoredProofs, Witnesses};
use crate::config::Config;
use crate::http::Shutdown;
use crate::operations::metric::gauge;

const INTERVAL: Duration = Duration::from_secs(1);
/// How long shutdown waits for the lease to be given up. By then it ends soon by itself.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);
/// How many steps are made before their head is signed.
const STEPS_MAX: usize = 64;

/// Appends to the log and signs it.
#[derive(Debug)]
pub(crate) struct LogTask {
    log: Arc<PostingLog>,
    sequencer: Sequencer,
    clock: Arc<dyn Clock>,
    last: LastSigned,
    /// `None` if there are none.
    witnesses: Option<Witnesses>,
    required_witnesses: usize,
    /// The epoch of the last round, if one was open.
    epoch: Option<u32>,
    /// Since when there are entries that are not published, or postings that may not be in the log.
    behind_since: Option<Instant>,
    /// The last failure, so that it is logged only once.
    problem: Option<String>,
    cannot_remember: bool,
}

/// Why a round was not finished.
enum Fault {
    /// Nothing is signed any more until an operator does something.
    Stop(String),
    /// The next round tries again.
    Again(String),
}

impl LogTask {
    /// The task, before it starts; `None` if this process has no key.
    ///
    /// # Errors
    /// When the last checkpoint cannot be read, or witnesses cannot be used.
    pub(crate) fn prepare(
        config: &Config,
        log: &Arc<PostingLog>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Option<Self>, Box<dyn Error + Send + Sync>> {
        if config.log.key_file.is_none() {
            return Ok(None);
        }
        let mut node = [0; 16];
        SystemRandomness.fill(&mut node);
        let witnesses = if config.log.witnesses.is_empty() { None } else { Some(Witnesses::new(config, clock)?) };
        Ok(Some(Self {
            log: Arc::clone(log),
            sequencer: Sequencer::new(Arc::clone(&log.store) as _, hex::encode(node)),
            clock: Arc::clone(clock),
            last: LastSigned::read(config.log.key_files())?,
            witnesses,
            required_witnesses: config.log.required_witnesses,
            epoch: None,
            behind_since: None,
            problem: None,
            cannot_remember: false,
        }))
    }

    /// Runs until shutdown, and leaves the log to the next node then. An interrupted step is repeated.
    pub(crate) async fn run(mut self, shutdown: Shutdown) {
        self.repeat(&shutdown).await;
        match timeout(RELEASE_TIMEOUT, self.sequencer.stop(self.clock.now())).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the next server continues the log of postings some 10 seconds later")
            }
            Err(_) => {
                tracing::warn!("the store is slow: the next server continues the log of postings some 10 seconds later")
            }
        }
    }

    /// Makes rounds until shutdown, or until the log must not be signed any more.
    async fn repeat(&mut self, shutdown: &Shutdown) {
        let mut is_stopped = false;
        loop {
            let round = async { if is_stopped { Ok(false) } else { self.round().await } };
            let round = tokio::select! {
                round = round => round,
                () = shutdown.cancelled() => return,
            };
            let may_have_more = match round {
                Ok(may_have_more) => {
                    if !is_stopped && self.problem.take().is_some() {
                        tracing::info!("the log of postings is appended to and published again");
                    }
                    may_have_more
                }
                Err(Fault::Stop(error)) => {
                    self.log.running.send_replace(None);
                    self.behind_since.get_or_insert_with(Instant::now);
                    tracing::error!(%error, "the log of postings is no longer signed");
                    is_stopped = true;
                    false
                }
                Err(Fault::Again(error)) => {
                    if self.epoch.is_some() {
                        self.behind_since.get_or_insert_with(Instant::now);
                    }
                    if self.problem.as_ref() != Some(&error) {
                        tracing::warn!(%error, "the log of postings could not be appended to or published; trying again");
                        self.problem = Some(error);
                    }
                    false
                }
            };
            let lag = self.behind_since.map(|since| since.elapsed()).unwrap_or_default();
            gauge!("metering_log_lag_seconds", "For how long the log has had entries that are not published")
                .set(lag.as_secs_f64());
            if may_have_more {
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = shutdown.cancelled() => return,
            }
        }
    }

    /// Appends and publishes; returns whether there may be more to append.
    async fn round(&mut self) -> Result<bool, Fault> {
        let mut steps = 0;
        loop {
            steps += 1;
            match self.sequencer.step(self.clock.now()).await? {
                Stepped::Leading { is_full, .. } if is_full && steps < STEPS_MAX => {}
                Stepped::Leading { is_full, head, .. } => {
                    // Even if nothing was posted since: receipts must not name a log that was rolled back.
                    self.last.size(&head)?;
                    self.found(&head);
                    self.publish(&head).await?;
                    return Ok(is_full);
                }
                Stepped::NotLeading => {
                    self.behind_since = None;
                    let open = self.log.store.log_epochs().await?.pop();
                    if let Some(open) = open.filter(|epoch| epoch.ended_at.is_none()) {
                        self.last.size(&open)?;
                        self.found(&open);
                        self.follow(&open).await?;
                    }
                    return Ok(false);
                }
                Stepped::NoLog => {
                    (self.epoch, self.behind_since) = (None, None);
                    self.log.running.send_replace(None);
                    return Err(Fault::Again("no log is open: `metering admin log init` begins one".to_owned()));
                }
            }
        }
    }

    /// Notes the open epoch.
    fn found(&mut self, epoch: &LogEpoch) {
        if self.epoch != Some(epoch.number) {
            self.epoch = Some(epoch.number);
            tracing::info!(origin = %epoch.origin, size = epoch.size, "the log of postings is open");
            self.log.running.send_replace(Some(epoch.origin.clone()));
            if let Some(witnesses) = &mut self.witnesses {
                witnesses.forget();
            }
        }
        gauge!("metering_log_leaves", "Entries of the log of postings").set(count(epoch.size));
        let published = epoch.checkpoint.as_ref().map_or(0, |(size, _)| *size);
        report_published(published);
    }

    /// Signs the head of the log and publishes it, if it grew.
    async fn publish(&mut self, head: &LogEpoch) -> Result<(), Fault> {
        let published = head.checkpoint.as_ref().map_or(0, |(size, _)| *size);
        if published == head.size {
            self.complete(head).await?;
            self.behind_since = None;
            return Ok(());
        }
        self.behind_since.get_or_insert_with(Instant::now);
        self.check(head).await?;
        let mut signed = self.sign(head)?;
        let remembered = self.last.remember(&signed).await;
        self.warn_once(remembered);
        let cosigned = match &mut self.witnesses {
            Some(witnesses) => {
                let proofs = StoredProofs { reader: &self.log.reader, epoch: head };
                witnesses.cosign(&mut signed, &proofs).await
            }
            None => 0,
        };
        if cosigned < self.required_witnesses {
            let required = self.required_witnesses;
            return Err(Fault::Again(format!(
                "{cosigned} witnesses cosigned, but log.required_witnesses is {required}: the last published \
                 checkpoint stays"
            )));
        }
        self.log.store.publish_checkpoint(head.number, head.size, signed.to_string()).await?;
        report_published(head.size);
        self.behind_since = None;
        Ok(())
    }

    /// Checks that the log continues the last signed checkpoint.
    async fn check(&self, epoch: &LogEpoch) -> Result<(), Fault> {
        let proof = self.log.reader.prove_consistency(epoch, self.last.size(epoch)?, epoch.size).await;
        let proof = proof.map_err(|error| match error {
            LogReadError::Proof(missing) => Fault::Again(format!(
                "entries of the time of the last signed checkpoint are pruned ({missing}), so nothing proves that the log \
                 continues it. If no backup was restored, delete {} and restart the server",
                self.last.files()
            )),
            other => other.into(),
        })?;
        self.last.check(epoch, &proof).map_err(Fault::from)
    }

    /// Remembers the checkpoint that another node published. Otherwise, when an old backup is restored, or a failover
    /// loses commits, and that node refuses to sign, this one would take over and sign a fork.
    async fn follow(&mut self, epoch: &LogEpoch) -> Result<(), Fault> {
        let (known, is_everywhere) = (self.last.size(epoch)?, self.last.is_everywhere());
        let is_new = |size: u64| size > known || (size == known && !is_everywhere);
        let Some((size, note)) = epoch.checkpoint.as_ref().filter(|(size, _)| is_new(*size)) else { return Ok(()) };
        self.check(epoch).await?;
        let Ok(published) = note.parse::<SignedCheckpoint>() else { return Ok(()) };
        let proof = self.log.reader.prove_consistency(epoch, *size, epoch.size).await?;
        let remembered = self.last.follow(&published, epoch, &proof).await;
        self.warn_once(remembered);
        Ok(())
    }

    fn warn_once(&mut self, remembered: io::Result<()>) {
        if let Err(error) = remembered
            && !std::mem::replace(&mut self.cannot_remember, true)
        {
            let file = self.last.files();
            tracing::warn!(%error, %file, "the last checkpoint cannot be kept next to the key: after a restart, an old backup of the database would not be noticed. Put the key file into a folder that the server can write to");
        }
    }

    /// Adds the signatures that the published checkpoint lacks: without a posting, a new key would not sign for days after
    /// a rotation began, and who knows only that key could not read the log. Cosignatures stay, as the text does not change.
    /// It is then kept next to each key.
    async fn complete(&mut self, head: &LogEpoch) -> Result<(), Fault> {
        let published = head.checkpoint.as_ref().and_then(|(_, note)| note.parse::<SignedCheckpoint>().ok());
        let Some(mut published) = published else { return Ok(()) };
        let signers = self.signers(head)?;
        let is_signed = signers.iter().all(|signer| published.note().names(signer.verifier()));
        if is_signed && self.last.is_everywhere() {
            return Ok(());
        }
        self.check(head).await?;
        if *published.checkpoint() != checkpoint(head)? {
            let problem = "has different entries from those of its published checkpoint";
            return Err(Fault::Stop(format!("the log {} {problem}", head.origin)));
        }
        signers.iter().for_each(|signer| published.also_sign(signer));
        let remembered = self.last.remember(&published).await;
        self.warn_once(remembered);
        self.log.store.publish_checkpoint(head.number, head.size, published.to_string()).await?;
        Ok(())
    }

    fn sign(&self, head: &LogEpoch) -> Result<SignedCheckpoint, Fault> {
        let signers = self.signers(head)?;
        let (first, others) = signers.split_first().ok_or_else(|| unfit(head, &"no key signs it"))?;
        let mut signed = SignedCheckpoint::sign(checkpoint(head)?, first).map_err(|error| unfit(head, &error))?;
        others.iter().for_each(|signer| signed.also_sign(signer));
        Ok(signed)
    }

    fn signers(&self, head: &LogEpoch) -> Result<Vec<NoteSigner>, Fault> {
        self.log.signers(head).ok_or_else(|| unfit(head, &"cannot be the name of a key"))
    }
}

/// The checkpoint of a head, not signed yet.
fn checkpoint(head: &LogEpoch) -> Result<Checkpoint, Fault> {
    let checkpoint = Checkpoint::new(head.origin.as_str(), head.size, TreeHash::from_bytes(head.root));
    checkpoint.map_err(|error| unfit(head, &error))
}

fn unfit(head: &LogEpoch, problem: &dyn Display) -> Fault {
    Fault::Stop(format!("the origin {:?}: {problem}", head.origin))
}

impl From<Rollback> for Fault {
    fn from(error: Rollback) -> Self {
        Self::Stop(error.to_string())
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Again(error.to_string())
    }
}

impl From<SequencerError> for Fault {
    fn from(error: SequencerError) -> Self {
        Self::Again(error.to_string())
    }
}

impl From<LogReadError> for Fault {
    fn from(error: LogReadError) -> Self {
        Self::Again(error.to_string())
    }
}

fn report_published(size: u64) {
    gauge!("metering_log_checkpoint_size", "Entries of the published checkpoint").set(count(size));
}

/// Rounded where `f64` is not exact.
fn count(entries: u64) -> f64 {
    entries.to_string().parse().unwrap_or(f64::INFINITY)
}
