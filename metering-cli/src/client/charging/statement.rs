//! `metering statement`: statements of the account from the service's log, which anyone can verify.

mod report;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::io::{BufReader, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use metering_client::Client;
use metering_client::calls::account::{GetStatement, StatementLines};
use metering_core::clock::CalendarPeriod;
use metering_core::wire::LogDocument;
use metering_log::checkpoint::{Policy, SignedCheckpoint};
use metering_log::note::{KeyName, SignatureKind, VerifierKey};
use metering_proof::{AccountStatement, ReceiptPayload, StatementSummary};
use serde::Deserialize;

use crate::client::charging::service_keys::{KeyArgs, ServiceKeys, open};
use crate::client::charging::signed_receipt;
use crate::client::session::ProfileArgs;
use crate::failure::Failure;
use crate::new_file::NewFile;
use crate::output::Format;
use report::Report;

/// Clock skew and commits in flight can move a receipt's posting to the previous or next statement, if it is this close to
/// the start or end.
const EDGE: Duration = Duration::from_secs(60);

/// Get statements of the account from the service's log, and verify them.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  metering statement get 2026-11 --out november.json
  metering statement verify november.json --receipt receipt.txt"
)]
pub(crate) struct StatementArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Get(GetArgs),
    Verify(VerifyArgs),
}

/// Get the statement of a day or a month (UTC): every change to the account's funds, with proofs.
#[derive(Debug, Args)]
#[command(after_help = "\
The pages of a long statement are JSON documents, one per line. `metering statement verify` reads them all.

Examples:
  metering statement get 2026-11 --out november.json
  metering statement get 2026-11-28 | metering statement verify -")]
struct GetArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The day or month, such as 2026-11-28 or 2026-11.
    #[arg(value_name = "PERIOD")]
    period: CalendarPeriod,
    /// Write to this file.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file if it exists.
    #[arg(long, requires = "out")]
    force: bool,
}

/// Verify a statement: its signature, line numbers and sums, and that the log contains each line.
#[derive(Debug, Args)]
#[command(after_help = "\
With --receipt, also checks that the statement contains the requests of your receipts.

Exit code 3: the statement was changed, does not add up, or does not match the log or the receipts.

Examples:
  metering statement verify november.json
  metering statement verify november.json --keys keys.json --receipt one.txt two.txt")]
struct VerifyArgs {
    /// The file with the statement, or - for standard input.
    #[arg(value_name = "FILE")]
    file: String,
    #[command(flatten)]
    keys: KeyArgs,
    /// A verifier key of the log (NAME+ID+KEY), by default those that the service publishes. Repeat it for several.
    #[arg(long = "log-key", value_name = "KEY")]
    log_keys: Vec<VerifierKey>,
    /// Files with signed receipts whose requests the statement must contain.
    #[arg(long = "receipt", value_name = "FILE", num_args = 1..)]
    receipts: Vec<PathBuf>,
    #[command(flatten)]
    format: Format,
}

impl StatementArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::Get(args) => args.run(out).await,
            Command::Verify(args) => args.run(out).await,
        }
    }
}

impl GetArgs {
    async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        let Some(file) = &self.out else { return self.fetch(&client, &mut |page| Ok(out.write_all(page)?)).await };
        let mut file = NewFile::next_to(file, self.force)?;
        self.fetch(&client, &mut |page| file.write_all(page).map_err(|error| file.cannot_write(&error))).await?;
        file.finish()
    }

    async fn fetch(
        &self,
        client: &Client,
        write: &mut (dyn FnMut(&[u8]) -> Result<(), Failure> + '_),
    ) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Page {
            next: Option<u64>,
        }
        let mut after = None;
        loop {
            let response = client.call::<GetStatement>(&StatementLines { period: self.period, after }, &()).await?;
            let page: Page = response.json()?;
            write(response.body.trim_ascii_end())?;
            write(b"\n")?;
            match page.next {
                Some(next) if Some(next) > after => after = Some(next),
                Some(_) => return Err(Failure::Failed("the service sent a page of the statement twice".to_owned())),
                None => return Ok(()),
            }
        }
    }
}

impl VerifyArgs {
    async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let (input, name) = open(&self.file)?;
        let keys = self.keys.read().await?;
        let receipts = self.receipts(&keys)?;
        let mut unmatched: Vec<&ReceiptPayload> = receipts.values().collect();
        let mut report: Option<Report> = None;
        let mut before: Option<StatementSummary> = None;
        for page in serde_json::Deserializer::from_reader(BufReader::new(input)).into_iter::<AccountStatement>() {
            let page = page.map_err(|error| Failure::Failed(format!("{name} is not a statement: {error}")))?;
            let summary = self.verify(&page, &keys)?;
            match &before {
                Some(before) => {
                    summary.follows(before).map_err(|fault| Failure::Discrepancies(format!("{name}: {fault}")))?;
                }
                None if summary.after.is_some() => {
                    let problem = "is valid, but its first pages are missing: get it again";
                    return Err(Failure::Failed(format!("{name} {problem}")));
                }
                None => {}
            }
            unmatched = summary.unmatched(unmatched);
            report = Some(Report::with(report, &summary, receipts.len())?);
            before = Some(summary);
        }
        let (Some(report), Some(last)) = (report, before) else {
            return Err(Failure::Failed(format!("{name} is not a statement: it is empty")));
        };
        if last.next.is_some() {
            return Err(Failure::Failed(format!("{name} is valid, but its last pages are missing: get it again")));
        }
        if let Some(receipt) = unmatched.first().copied() {
            let file = receipts.iter().find(|(_, other)| *other == receipt).map_or("", |(file, _)| file.as_str());
            return Err(contradiction(file, receipt, &report));
        }
        report.write(&keys, self.format, out)
    }

    /// The contents of a page, if its keys and its log's checkpoint verify it.
    fn verify(&self, page: &AccountStatement, keys: &ServiceKeys) -> Result<StatementSummary, Failure> {
        let invalid = |problem: &dyn Display| Failure::Discrepancies(format!("{}: {problem}", self.file));
        let signed = page.checkpoint().parse::<SignedCheckpoint>().map_err(|error| invalid(&error))?;
        let origin = signed.checkpoint().origin();
        let trusted = Policy::new(origin, of_log(self.log_keys(origin, keys), origin)).check(&signed);
        let trusted =
            trusted.map_err(|error| invalid(&format_args!("{error}; see --log-key for the key of the log")))?;
        let summary = page.verify(&keys.set, &trusted.checkpoint).map_err(|fault| invalid(&fault))?;
        keys.check_issuer("statement", &summary.issuer)?;
        Ok(summary)
    }

    /// The keys of the log: those that were given, or else those that the service publishes for logs and receipts.
    fn log_keys(&self, origin: &str, keys: &ServiceKeys) -> Vec<VerifierKey> {
        #[derive(Default, Deserialize)]
        struct Published {
            #[serde(default)]
            logs: Vec<LogDocument>,
        }
        if !self.log_keys.is_empty() {
            return self.log_keys.clone();
        }
        let published: Published = serde_json::from_str(&keys.text).unwrap_or_default();
        let of_logs = published.logs.iter().flat_map(|log| log.previous_vkeys.iter().chain([&log.vkey]));
        let of_logs = of_logs.filter_map(|vkey| vkey.parse::<VerifierKey>().ok());
        let name = KeyName::new(origin).ok();
        let of_receipts = keys.set.iter().filter_map(|(_, key)| {
            let name = name.clone()?;
            Some(VerifierKey::new(name, SignatureKind::Note, key))
        });
        // A service that does not list its logs may use the same key for both.
        let of_logs: Vec<_> = of_logs.collect();
        if of_logs.is_empty() { of_receipts.collect() } else { of_logs }
    }

    /// The verified receipts by their files.
    fn receipts(&self, keys: &ServiceKeys) -> Result<BTreeMap<String, ReceiptPayload>, Failure> {
        let read = |file: &PathBuf| {
            let name = file.display().to_string();
            let text = fs::read_to_string(file);
            let text = text.map_err(|error| Failure::Failed(format!("cannot read {name}: {error}")))?;
            let payload = signed_receipt::verify(&signed_receipt::parse(&text, &name)?, &name, keys)?;
            Ok((name, payload))
        };
        self.receipts.iter().map(read).collect()
    }
}

/// The keys with the name of the log. The operator's other keys do not count: otherwise a second, unwatched log, signed
/// with a key that readers know, could pass for the first.
fn of_log(mut keys: Vec<VerifierKey>, origin: &str) -> Vec<VerifierKey> {
    keys.retain(|key| key.name().as_str() == origin);
    keys
}

/// Explains why no line of a statement matches a receipt.
fn contradiction(file: &str, receipt: &ReceiptPayload, report: &Report) -> Failure {
    let is_within = receipt.at >= report.from && receipt.at < report.until;
    if is_within && receipt.account.as_str() == report.org_id && receipt.issuer == report.issuer {
        let is_inside =
            receipt.at >= report.from.saturating_add(EDGE) && receipt.at < report.until.saturating_sub(EDGE);
        if !is_inside {
            return Failure::Failed(format!(
                "the statement does not have {} at {} ({file}), less than a minute from its start or end: verify the \
                 adjacent statement too, which may have it. If it does not, keep all of them as evidence",
                receipt.request, receipt.at
            ));
        }
        return Failure::Discrepancies(format!(
            "the statement is signed and valid, but does not have {} of {} credits at {} ({file}): keep both as evidence",
            receipt.request, receipt.amount, receipt.at
        ));
    }
    let advice = match (&receipt.log, receipt.logged_by) {
        _ if receipt.account.as_str() != report.org_id || receipt.issuer != report.issuer => {
            "it belongs to another statement".to_owned()
        }
        (Some(log), _) if *log != report.log => {
            format!("it is in another log ({log}), and only statements from that time have it")
        }
        (_, Some(by)) if receipt.at >= report.until && !report.complete => {
            format!("the log had not got that far: get the statement again, after {by} at the latest")
        }
        _ => "get the statement of its day".to_owned(),
    };
    Failure::Failed(format!(
        "{file} is a valid receipt of {} at {}, and the statement is of {} from {} until {}: {advice}",
        receipt.account, receipt.at, report.org_id, report.from, report.until
    ))
}

#[cfg(test)]
mod tests {
    use metering_log::keys::PrivateKey;
    use metering_log::note::NoteSigner;

    use super::*;

    #[test]
    fn a_log_is_trusted_by_keys_of_its_own_name_only() {
        let origin = |name: &str| KeyName::new(name).unwrap();
        let key = |name: &str| NoteSigner::new(origin(name), PrivateKey::from_seed(&[7; 32])).verifier().clone();
        let keys = vec![key("api.example.com/log/1"), key("api.example.com/log/2")];
        assert_eq!(of_log(keys.clone(), "api.example.com/log/1"), [keys[0].clone()]);
        assert_eq!(of_log(keys, "api.example.com/log/1b"), []);
    }
}
