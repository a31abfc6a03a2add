//! `metering receipt`: signed receipts of requests, which anyone can verify.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::{Args, Subcommand};
use metering_client::calls::receipts::GetReceiptKeys;
use metering_client::{Client, ServiceUrl};
use metering_core::ClientSource;
use metering_core::receipts::ReceiptKind;
use metering_core::wire::call::Call;
use metering_log::keys::JwkSet;
use metering_proof::{ReceiptFault, ReceiptPayload, SignedReceipt};

use crate::client::session::ProfileArgs;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::{printable, write_pairs};

/// Verify signed receipts of requests; those for purchases are in `metering receipts`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Example:
  metering receipt verify receipt.txt"
)]
pub(crate) struct ReceiptArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Verify(VerifyArgs),
}

/// Verify the signed receipt of a request, and print what it states.
#[derive(Debug, Args)]
#[command(after_help = "\
`metering call PATH --receipt FILE` asks for one. Keep the service's keys (URL/.well-known/metering-keys) with your
receipts: with that file, they still verify if the service publishes other keys.

Exit code 1: it is not a receipt, it was changed, or no key of the service signed it.

Examples:
  metering receipt verify receipt.txt
  metering receipt verify receipt.txt --keys https://api.example.com
  metering receipt verify - --keys keys.json < receipt.txt")]
struct VerifyArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The file with the receipt, or - for standard input.
    #[arg(value_name = "FILE")]
    file: String,
    /// The keys: a file with a JWK set, or the URL of the service; by default those of the profile's service.
    #[arg(long, value_name = "FILE|URL")]
    keys: Option<String>,
    #[command(flatten)]
    format: Format,
}

/// Public keys, and where they are from.
struct Keys {
    set: JwkSet,
    /// `None` for a file.
    service: Option<ServiceUrl>,
}

impl ReceiptArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::Verify(args) => args.run(out).await,
        }
    }
}

impl VerifyArgs {
    async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let name = if self.file == "-" { "standard input" } else { self.file.as_str() };
        let invalid = |fault: ReceiptFault| Failure::Failed(format!("{name}: {fault}"));
        let text = if self.file == "-" { io::read_to_string(io::stdin()) } else { fs::read_to_string(&self.file) };
        let text = text.map_err(|error| Failure::Failed(format!("cannot read {name}: {error}")))?;
        let receipt = text.parse::<SignedReceipt>().map_err(invalid)?;
        let keys = self.keys().await?;
        let payload = receipt.verify(&keys.set).map_err(invalid)?;
        keys.check_issuer(&payload.issuer)?;
        if self.format.json {
            return write_json(out, &payload);
        }
        let from = keys.service.as_ref().map_or_else(|| self.keys.clone().unwrap_or_default(), ToString::to_string);
        let issuer = printable(&payload.issuer);
        writeln!(out, "Valid: signed as {issuer} with a key of {}, and not changed since.\n", printable(&from))?;
        write(out, &payload)
    }

    async fn keys(&self) -> Result<Keys, Failure> {
        let (text, service) = match self.keys.as_deref() {
            Some(url) if url.contains("://") => {
                let url = url.strip_suffix(GetReceiptKeys::PATH).unwrap_or(url);
                let url =
                    url.parse::<ServiceUrl>().map_err(|error| Failure::Usage(format!("--keys: a URL {error}")))?;
                let transport = self.profile.open()?.transport_to(&url)?;
                (fetch(&Client::new(transport, ClientSource::Cli)).await?, Some(url))
            }
            Some(file) => (read(Path::new(file))?, None),
            None => {
                let session = self.profile.open()?;
                (fetch(&session.anonymous()).await?, Some(session.url().clone()))
            }
        };
        let set = JwkSet::parse(&text).map_err(|error| Failure::Failed(format!("cannot read the keys: {error}")))?;
        Ok(Keys { set, service })
    }
}

impl Keys {
    /// A service's keys verify only its own receipts: it could sign others in any name.
    fn check_issuer(&self, issuer: &str) -> Result<(), Failure> {
        let Some(service) = self.service.as_ref().map(ToString::to_string) else { return Ok(()) };
        if issuer.parse::<ServiceUrl>().is_ok_and(|issuer| issuer.to_string() == service) {
            return Ok(());
        }
        Err(Failure::Failed(format!(
            "the receipt says that it is from {issuer}, but the keys are those of {service}; verify it with --keys \
             {issuer}, or with a file of keys that you trust"
        )))
    }
}

async fn fetch(client: &Client) -> Result<String, Failure> {
    let body = client.call::<GetReceiptKeys>(&(), &()).await?.body;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn read(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|error| Failure::Failed(format!("cannot read {}: {error}", file.display())))
}

fn write(out: &mut dyn Write, payload: &ReceiptPayload) -> Result<(), Failure> {
    let happened = match payload.kind {
        ReceiptKind::Charge => "Charged",
        ReceiptKind::Capture => "Captured",
        ReceiptKind::Refund => "Refunded",
    };
    let unknown = || "not known".to_owned();
    let amount = format!("{} credits", payload.amount);
    let balance = payload.balance.map_or_else(unknown, |balance| format!("{balance} credits"));
    let prices = payload.price_version.map_or_else(unknown, |number| number.to_string());
    write_pairs(
        out,
        &[
            ("Request", &payload.request),
            (happened, &amount),
            ("Balance after", &balance),
            ("At", &payload.at),
            ("Route", &payload.route),
            ("Price version", &prices),
            ("Client", &payload.source),
            ("Account", &payload.account),
            ("Key", &payload.key),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The receipt and the keys of `docs/provable-bills.md`.
    fn vector(name: &str) -> String {
        format!("{}/../metering-proof/tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    async fn verify(file: &str, keys: &str) -> Result<String, Failure> {
        use clap::Parser;

        #[derive(Parser)]
        struct Program {
            #[command(flatten)]
            args: VerifyArgs,
        }
        let args = Program::parse_from(["verify", file, "--keys", keys]).args;
        let mut out = Vec::new();
        args.run(&mut out).await?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[tokio::test]
    async fn what_a_receipt_states_is_printed_once_it_is_verified() {
        let printed = verify(&vector("receipt.txt"), &vector("keys.json")).await.unwrap();
        assert!(printed.starts_with("Valid: signed as https://api.example.com with a key of "), "{printed}");
        let stated = ["Charged        0.0000347222 credits", "GET /quotes/{number}", "org_AAAAAAAAAAAAAAAAAAAA"];
        assert!(stated.iter().all(|text| printed.contains(text)), "{printed}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("changed.txt");
        let file = file.to_str().unwrap();
        let receipt = fs::read_to_string(vector("receipt.txt")).unwrap();
        let changed = receipt.replacen("eyJ2Ijox", "eyJ2Ijoy", 1);
        for (text, expected) in [(changed, "is not one of those that were signed"), (String::new(), "has six")] {
            fs::write(file, text).unwrap();
            let failure = verify(file, &vector("keys.json")).await.unwrap_err();
            assert_eq!(failure.exit_code(), 1);
            assert!(failure.to_string().contains(expected) && failure.to_string().contains(file), "{failure}");
        }
    }

    #[test]
    fn keys_of_one_service_verify_no_receipt_of_another() {
        let keys = |url: Option<&str>| Keys { set: JwkSet::default(), service: url.map(|url| url.parse().unwrap()) };
        // where the keys are from, the issuer, whether that is fine
        let table = [
            (None, "https://api.example.com", true),
            (Some("https://api.example.com/"), "https://api.example.com", true),
            (Some("https://api.example.net"), "https://api.example.com", false),
            (Some("http://api.example.com"), "https://api.example.com", false),
            (Some("https://api.example.com"), "", false),
        ];
        for (service, issuer, is_fine) in table {
            assert_eq!(keys(service).check_issuer(issuer).is_ok(), is_fine, "{service:?} {issuer}");
        }
    }
}
