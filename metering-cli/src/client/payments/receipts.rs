//! `metering receipts`: the receipts for the account's purchases.

mod receipt;

use std::io::Write;

use clap::{Args, Subcommand};
use metering_client::calls::account::{GetReceipt, ListReceipts, OfReceipt, ReceiptsPage};
use metering_core::wire::ValueDocument;
use metering_core::wire::call::{Bounded, EntryNumber};
use serde::Deserialize;

use crate::client::payments::receipts::receipt::Receipt;
use crate::client::session::options::CallOptions;
use crate::commands::up_to;
use crate::failure::Failure;
use crate::output::notice;
use crate::table::table;

/// List the receipts for the account's purchases, newest first, or show one.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  metering receipts
  metering receipts --limit 100 --json
  metering receipts show R-8453-9F86D081884C7D65"
)]
pub(crate) struct ReceiptsArgs {
    #[command(subcommand)]
    command: Option<Command>,
    /// How many receipts to show: 1 to 100.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = up_to(100))]
    limit: u32,
    /// Continue after this cursor: the value of `next` in the previous JSON output.
    #[arg(long, value_name = "NEXT", value_parser = clap::value_parser!(i64).range(0..))]
    before: Option<i64>,
    #[command(flatten)]
    options: CallOptions,
}

#[derive(Debug, Subcommand)]
enum Command {
    Show(ShowArgs),
}

/// Show a receipt: seller, buyer, purchase and payment.
#[derive(Debug, Args)]
#[command(after_help = "\
The same receipt as a page to print is at /metering/receipt?number=NUMBER on the service.

Examples:
  metering receipts show R-8453-9F86D081884C7D65
  metering receipts show R-8453-9F86D081884C7D65 --json")]
struct ShowArgs {
    /// The number of the receipt, or of one of its credit notes.
    #[arg(value_name = "NUMBER")]
    number: String,
    #[command(flatten)]
    options: CallOptions,
}

/// The fields read from the response to `GET /credits/receipts`.
#[derive(Debug, Deserialize)]
struct Receipts {
    receipts: Vec<Receipt>,
    next: Option<i64>,
}

impl ReceiptsArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        if let Some(Command::Show(args)) = self.command {
            return args.run(out).await;
        }
        let page = ReceiptsPage { before: self.before.map(EntryNumber), limit: Bounded(self.limit) };
        let response = self.options.client()?.call::<ListReceipts>(&page, &()).await?;
        self.options.print::<Receipts>(response, out, |receipts, out| {
            receipts.write(out)?;
            out.flush()?;
            if let Some(next) = receipts.next {
                notice(&format!("`metering receipts --before {next}` shows older ones."));
            }
            Ok(())
        })
    }
}

impl Receipts {
    fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.receipts.is_empty() {
            return Ok(writeln!(out, "No purchases yet.")?);
        }
        table!(out, &self.receipts, |receipt| {
            word("NUMBER") => receipt.number,
            time("ISSUED") => receipt.issued_at,
            state("STATUS").optional(2) => receipt.status,
            text("PLAN").optional(1) => receipt.plan(),
            amount("CREDITS") => receipt.credits.signed(),
            word("PAID").optional(3) => ValueDocument::beside(receipt.payment.paid(), receipt.payment.value.as_ref()),
        })
    }
}

impl ShowArgs {
    async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let response = self.options.client()?.call::<GetReceipt>(&OfReceipt { number: self.number }, &()).await?;
        self.options.print::<Receipt>(response, out, Receipt::write)
    }
}
