//! `metering receipt`: signed receipts of requests, which anyone can verify.

use std::io::{self, Write};

use clap::Args;
use metering_core::receipts::ReceiptKind;
use metering_proof::{ReceiptFault, ReceiptPayload, SignedReceipt};

use crate::client::charging::service_keys::{KeyArgs, ServiceKeys, open};
use crate::commands::commands;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::{printable, write_pairs};

commands! {
    /// Verify signed receipts of requests; those for purchases are in `metering receipts`.
    #[command(after_help = "\
Example:
  metering receipt verify receipt.txt")]
    ReceiptArgs {
        Verify(VerifyArgs),
    }
}

/// Verify the signed receipt of a request, and print its contents.
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
    /// The file with the receipt, or - for standard input.
    #[arg(value_name = "FILE")]
    file: String,
    #[command(flatten)]
    keys: KeyArgs,
    #[command(flatten)]
    format: Format,
}

impl VerifyArgs {
    async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let (input, name) = open(&self.file)?;
        let text = io::read_to_string(input);
        let text = text.map_err(|error| Failure::Failed(format!("cannot read {name}: {error}")))?;
        let receipt = parse(&text, name)?;
        let keys = self.keys.read().await?;
        let payload = verify(&receipt, name, &keys)?;
        if self.format.json {
            return write_json(out, &payload);
        }
        let (issuer, from) = (printable(&payload.issuer), printable(&keys.from));
        writeln!(out, "Valid: signed as {issuer} with a key of {from}, and not changed since.\n")?;
        write(out, &payload)
    }
}

/// The receipt in the text of a file.
pub(super) fn parse(text: &str, name: &str) -> Result<SignedReceipt, Failure> {
    text.parse().map_err(|fault: ReceiptFault| invalid(name, &fault))
}

/// The contents of a receipt, if the keys belong to its issuer.
pub(super) fn verify(receipt: &SignedReceipt, name: &str, keys: &ServiceKeys) -> Result<ReceiptPayload, Failure> {
    let payload = receipt.verify(&keys.set).map_err(|fault| invalid(name, &fault))?;
    keys.check_issuer("receipt", &payload.issuer)?;
    Ok(payload)
}

fn invalid(name: &str, fault: &ReceiptFault) -> Failure {
    Failure::Failed(format!("{name}: {fault}"))
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
    let log = match (&payload.log, payload.logged_by) {
        (Some(log), Some(by)) => format!("{log}, by {by}"),
        _ => "none".to_owned(),
    };
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
            ("Log", &log),
        ],
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The receipt and the keys of `docs/provable-bills.md`.
    fn vector(name: &str) -> String {
        format!("{}/../metering-proof/tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    async fn run(file: &str, keys: &str) -> Result<String, Failure> {
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
        let printed = run(&vector("receipt.txt"), &vector("keys.json")).await.unwrap();
        assert!(printed.starts_with("Valid: signed as https://api.example.com with a key of "), "{printed}");
        let stated = ["Charged        0.0000347222 credits", "GET /quotes/{number}", "org_AAAAAAAAAAAAAAAAAAAA"];
        assert!(stated.iter().all(|text| printed.contains(text)), "{printed}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("changed.txt");
        let file = file.to_str().unwrap();
        let receipt = fs::read_to_string(vector("receipt.txt")).unwrap();
        let changed = receipt.replacen("eyJ2Ijox", "eyJ2Ijoy", 1);
        for (text, expected) in [(changed, "is not one of the signed ones"), (String::new(), "has six")] {
            fs::write(file, text).unwrap();
            let failure = run(file, &vector("keys.json")).await.unwrap_err();
            assert_eq!(failure.exit_code(), 1);
            assert!(failure.to_string().contains(expected) && failure.to_string().contains(file), "{failure}");
        }
    }
}
