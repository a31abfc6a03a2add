//! `metering payments`: for operators, to report a processor's payments and reversals. Each report counts once, so a
//! command can be run again.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use metering_client::Client;
use metering_client::calls::payments::{CreditPayment, ReversePayment};
use metering_core::Credits;
use metering_core::wire::{
    ProcessorPaymentRequest, ProcessorPaymentResponse, ProcessorReversalRequest, ProcessorReversalResponse,
};
use zeroize::Zeroizing;

use crate::client::session::documents::Document;
use crate::client::session::options::CallOptions;
use crate::commands::commands;
use crate::failure::Failure;
use crate::output::notice;
use crate::table::write_pairs;

const SECRET_VARIABLE: &str = "METERING_CLIENT_PAYMENTS_SECRET";

commands! {
    /// Report payments that a processor took for your service, such as card payments, and their reversals.
    #[command(after_help = "\
These commands need the payments secret of the service (billing.payments_secret_file), not a key. Each payment and each
reversal counts once, by the processor's id, so a command can be run again.

Examples:
  metering payments credit --processor paddle --id txn_1 --account org_1 --amount 10.00 --currency EUR --plan starter
  metering payments reverse --processor paddle --id adj_1 --payment txn_1")]
    PaymentsArgs {
        Credit(CreditArgs),
        Reverse(ReverseArgs),
    }
}

/// What both commands need.
#[derive(Debug, Args)]
struct ReportArgs {
    /// A file with the payments secret; by default, it is in METERING_CLIENT_PAYMENTS_SECRET.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// The processor's name, such as paddle: 1 to 32 characters of a-z 0-9 _ -.
    #[arg(long, value_name = "NAME")]
    processor: String,
    #[command(flatten)]
    options: CallOptions,
}

/// Credit a payment to an account. Report it once the processor has the money.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering payments credit --processor paddle --id txn_1 --account org_1 --amount 10.00 --currency EUR --plan starter
  metering payments credit --processor bank --id 17 --account org_1 --amount 5 --currency USD --credits 50 --json")]
struct CreditArgs {
    #[command(flatten)]
    report: ReportArgs,
    /// The processor's id of the payment.
    #[arg(long, value_name = "ID")]
    id: String,
    /// The account that gets the credits.
    #[arg(long, value_name = "ORG_ID")]
    account: String,
    /// The amount paid, such as 10.00.
    #[arg(long, value_name = "AMOUNT")]
    amount: String,
    /// The currency (ISO 4217), such as EUR.
    #[arg(long, value_name = "CODE")]
    currency: String,
    /// The plan that was sold. Without --credits, the account gets the plan's credits.
    #[arg(long, value_name = "PLAN")]
    plan: Option<String>,
    /// The credits that the account gets.
    #[arg(long, value_name = "CREDITS", required_unless_present = "plan")]
    credits: Option<Credits>,
}

/// Take back the credits of a payment that was refunded or disputed, or return them if the reversal has ended.
#[derive(Debug, Args)]
#[command(after_help = "\
The balance may go below zero. Without --amount, the whole payment is reversed.

Examples:
  metering payments reverse --processor paddle --id adj_1 --payment txn_1 --amount 2.50 --currency EUR
  metering payments reverse --processor paddle --id dispute_1 --payment txn_1 --restored")]
struct ReverseArgs {
    #[command(flatten)]
    report: ReportArgs,
    /// The processor's id of the refund or dispute.
    #[arg(long, value_name = "ID")]
    id: String,
    /// The processor's id of the payment.
    #[arg(long, value_name = "ID")]
    payment: String,
    /// How much of the payment is reversed, such as 2.50.
    #[arg(long, value_name = "AMOUNT", requires = "currency")]
    amount: Option<String>,
    /// The payment's currency (ISO 4217).
    #[arg(long, value_name = "CODE", requires = "amount")]
    currency: Option<String>,
    /// The reason, for the account's ledger: one line of at most 200 characters.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The dispute was won, or the refund failed: return the credits permanently.
    #[arg(long)]
    restored: bool,
}

impl ReportArgs {
    /// A client with the payments secret, and no key.
    fn client(&self) -> Result<Client, Failure> {
        let secret = match &self.secret_file {
            Some(file) => std::fs::read_to_string(file)
                .map_err(|error| Failure::Failed(format!("cannot read {}: {error}", file.display())))?,
            None => std::env::var(SECRET_VARIABLE).map_err(|_| {
                Failure::Usage(format!("no payments secret: set {SECRET_VARIABLE}, or name a file with --secret-file"))
            })?,
        };
        let secret = Zeroizing::new(secret);
        Ok(self.options.open()?.anonymous().with_billing_secret(secret.trim())?)
    }
}

impl CreditArgs {
    async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.report.client()?;
        let request = ProcessorPaymentRequest {
            processor: Some(self.report.processor),
            id: Some(self.id),
            org_id: Some(self.account),
            amount: Some(self.amount),
            currency: Some(self.currency),
            plan_id: self.plan,
            credits: self.credits,
            ..ProcessorPaymentRequest::default()
        };
        let document: Document<ProcessorPaymentResponse> =
            Document::of(client.call::<CreditPayment>(&(), &request).await?)?;
        let credited = &document.content;
        if self.report.options.json() {
            document.write_json(out)?;
        } else {
            let plan = credited.plan_id.as_deref().unwrap_or("-");
            write_pairs(
                out,
                &[
                    ("Account", &credited.org_id),
                    ("Plan", &plan),
                    ("Credits added", &credited.amount_added),
                    ("Balance", &credited.credit_balance),
                    ("Receipt", &credited.receipt_number),
                ],
            )?;
        }
        out.flush()?;
        if credited.already_credited {
            notice("The payment was credited before; nothing changed.");
        }
        if credited.account_revoked {
            notice("The account is revoked: refund the payment, and report that with `metering payments reverse`.");
        }
        Ok(())
    }
}

impl ReverseArgs {
    async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.report.client()?;
        let request = ProcessorReversalRequest {
            processor: Some(self.report.processor),
            id: Some(self.id),
            payment_id: Some(self.payment),
            amount: self.amount,
            currency: self.currency,
            reason: self.reason,
            restored: self.restored,
            ..ProcessorReversalRequest::default()
        };
        let document: Document<ProcessorReversalResponse> =
            Document::of(client.call::<ReversePayment>(&(), &request).await?)?;
        let reversed = &document.content;
        if self.report.options.json() {
            document.write_json(out)?;
        } else {
            let amount = format!("{} {}", reversed.amount_reversed, reversed.currency);
            let state = if reversed.restored { "ended" } else { "in effect" };
            write_pairs(
                out,
                &[
                    ("Account", &reversed.org_id),
                    ("Reversal", &state),
                    ("Payment reversed", &amount),
                    ("Balance", &reversed.credit_balance),
                ],
            )?;
        }
        out.flush()?;
        if reversed.already_recorded {
            notice("The reversal was recorded before; nothing changed.");
        }
        Ok(())
    }
}
