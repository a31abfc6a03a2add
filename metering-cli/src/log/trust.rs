//! The log to check, and the signatures that count.

use clap::Args;
use metering_log::checkpoint::Policy;
use metering_log::note::{SignatureKind, VerifierKey};

use crate::failure::Failure;

/// The keys of a log.
#[derive(Debug, Args)]
pub(crate) struct LogKeys {
    /// A verifier key of the log (`NAME+ID+KEY`). Repeat it for a log with several.
    #[arg(long = "log-key", value_name = "KEY", required = true)]
    log_keys: Vec<VerifierKey>,
    /// The origin line of the log's checkpoints; the name of its first key by default.
    #[arg(long, value_name = "NAME")]
    origin: Option<String>,
}

impl LogKeys {
    /// Trusts the log alone.
    pub(crate) fn policy(&self) -> Result<Policy, Failure> {
        let first = self.log_keys.first().map(|key| key.name().to_string()).unwrap_or_default();
        let origin = self.origin.clone().unwrap_or(first);
        Ok(Policy::new(origin, of_logs(&self.log_keys)?))
    }
}

/// The keys of `--log-key`.
pub(crate) fn of_logs(keys: &[VerifierKey]) -> Result<Vec<VerifierKey>, Failure> {
    of_kind(keys, SignatureKind::Note, "--log-key: that is the key of a witness")
}

/// The witnesses that must have cosigned a checkpoint.
#[derive(Debug, Args)]
pub(crate) struct Witnesses {
    /// A verifier key of a witness that must have cosigned the checkpoint. Repeat it for several.
    #[arg(long = "witness", value_name = "KEY")]
    witnesses: Vec<VerifierKey>,
    /// How many of the witnesses must have cosigned; all of them by default.
    #[arg(long, value_name = "N", requires = "witnesses")]
    quorum: Option<usize>,
}

impl Witnesses {
    pub(crate) fn required(&self, policy: Policy) -> Result<Policy, Failure> {
        let quorum = self.quorum.unwrap_or(self.witnesses.len());
        if quorum > self.witnesses.len() {
            return Err(Failure::Usage(format!(
                "--quorum {quorum}: only {} witnesses are named",
                self.witnesses.len()
            )));
        }
        let known = of_kind(&self.witnesses, SignatureKind::Cosignature, "--witness: that is the key of a log")?;
        Ok(policy.with_witnesses(known, quorum))
    }
}

fn of_kind(keys: &[VerifierKey], kind: SignatureKind, otherwise: &str) -> Result<Vec<VerifierKey>, Failure> {
    match keys.iter().find(|key| key.kind() != kind) {
        Some(key) => Err(Failure::Usage(format!("{otherwise}: {key}"))),
        None => Ok(keys.to_vec()),
    }
}
