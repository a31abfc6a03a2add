//! `metering log witness`: cosigns the checkpoints that logs submit, if they extend the last one cosigned.

mod followed;
mod serving;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use metering_config::server::read_key_ring;
use metering_log::note::{Cosigner, KeyName, VerifierKey};
use metering_log::witness::Witness;
use tokio::net::TcpListener;

use crate::failure::Failure;
use crate::log::trust::of_logs;
use crate::log::witness::followed::FollowedLogs;
use crate::log::witness::serving::serve;

/// Run a witness: cosign the checkpoints that logs submit, unless the log was forked or rewritten.
///
/// Serves C2SP tlog-witness over HTTP until it is stopped: logs post to /add-checkpoint, and anyone can read the last
/// checkpoint cosigned. A cosigned checkpoint is on disk before the response is sent, so the witness can be killed at
/// any time. Prints its verifier key. Use its key for nothing else, and run one process per key.
/// Put a proxy with TLS in front of it.
#[derive(Debug, Args)]
#[command(after_help = "\
To make a key: openssl genpkey -algorithm ed25519 -out witness.pem, and set its mode to 600.

Examples:
  metering log witness --listen 127.0.0.1:8400 --name example.org/witness --key witness.pem --keep witnessed \
  --log-key example.com/log+9be5d3c6+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c")]
pub(crate) struct WitnessArgs {
    /// The address and port to listen on.
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The verifier key (`NAME+ID+KEY`) of a log to follow, whose origin is NAME. Repeat it for other logs, and for another
    /// key of the same log.
    #[arg(long = "log-key", value_name = "KEY", required = true)]
    log_keys: Vec<VerifierKey>,
    /// The name of this witness, such as a URL of yours without https://.
    #[arg(long, value_name = "NAME")]
    name: KeyName,
    /// The file with the private key of this witness (Ed25519, PEM or JWK). Others must not be able to read it.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The folder for the last checkpoints cosigned. Never restore an old copy of it: if it is lost, use
    /// another key.
    #[arg(long, value_name = "FOLDER")]
    keep: PathBuf,
}

impl WitnessArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let log_keys = of_logs(&self.log_keys)?;
        let keys = read_key_ring(&self.key).map_err(Failure::Failed)?;
        let witness = Witness::new(Cosigner::new(self.name, keys.signing().clone()));
        let verifier = witness.verifier().to_string();
        let logs = FollowedLogs::open(witness, log_keys, &self.keep)?;

        let failed = |error: io::Error| Failure::Failed(format!("cannot listen on {}: {error}", self.listen));
        let listener = TcpListener::bind(self.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        writeln!(out, "vkey       {verifier}")?;
        writeln!(out, "listening  http://{address}")?;
        out.flush()?;
        match serve(listener, logs).await {}
    }
}
