//! `payments assign`: credits an unclaimed payment to an account.

use std::io::Write;

use clap::Args;
use metering_admin::payments::{Assignment, ReasonError, Worth};
use metering_admin::wire::{AssignmentDetails, AssignmentDocument};
use metering_core::chains::TxHash;
use metering_core::money::DecimalError;
use metering_core::{AccountId, Credits};

use crate::admin::account::document;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, notice, write_json};

/// Assign an unclaimed payment to an account.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads the transaction from the chain. It must have succeeded, have the confirmations that the chain's section requires,
and contain one transfer to a recipient of the chain's plans in the token of such a plan. With --plan, the transfer must
go to that plan's recipient, in its token, and cover its price. If it is not clear what was paid, nothing is assigned;
use `metering admin account grant` instead.
A transaction can be credited only once. If it contains payments in two tokens, choose one with --plan, and grant
credits for the other.
The command does not ask the owner of the paying wallet: make sure that the account's owner sent the payment. The wallet
is not linked to the account. Assigning the payment to the same account again changes nothing. The account's owner can
read the --reason in the ledger.

Examples:
  metering admin payments assign --config /etc/metering.toml --chain base \
--tx 0x88df016429689c079f3b2f6ad39fa052532c56795b733da78a91ebe6a713944b --account org_0123456789abcdefghij --plan starter
  metering admin payments assign --config /etc/metering.toml --chain base \
--tx 0x88df016429689c079f3b2f6ad39fa052532c56795b733da78a91ebe6a713944b --account org_0123456789abcdefghij --credits 9.5 \
--reason \"Ticket 311: sent 4.75 USDC instead of 5\"")]
pub(crate) struct AssignArgs {
    /// The chain, by the name of its configuration section.
    #[arg(long, value_name = "NAME")]
    chain: String,
    /// The transaction's hash.
    #[arg(long, value_name = "HASH")]
    tx: TxHash,
    /// The account's id.
    #[arg(long, value_name = "ORG")]
    account: AccountId,
    #[command(flatten)]
    worth: WorthArgs,
    /// Assign it even if an open quote is waiting for it; the quote can then no longer be claimed with it.
    #[arg(long)]
    despite_quote: bool,
    #[command(flatten)]
    format: Format,
}

/// The value of the payment.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct WorthArgs {
    /// The plan of this chain that was bought, on sale or not; its bonus is credited too.
    #[arg(long, value_name = "ID")]
    plan: Option<String>,
    /// The credits to add: above zero, with up to eight decimal places.
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    credits: Option<Credits>,
}

fn positive(text: &str) -> Result<Credits, String> {
    let credits: Credits = text.parse().map_err(|error: DecimalError| error.to_string())?;
    if credits.is_positive() { Ok(credits) } else { Err("must be above zero".to_owned()) }
}

impl AssignArgs {
    pub(crate) async fn run(self: Box<Self>, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        let (chain, json) = (self.chain.clone(), self.format.json);
        let mut assigned = administrator.assign(&chain, self.assignment(session)?).await?;
        let details = assigned.details.take();
        if let Some(quote) = details.as_ref().and_then(|details| details.quote.as_ref()) {
            notice(&format!(
                "warning: the quote of {} is waiting for this payment, and can no longer be claimed with it",
                quote.agent_name
            ));
        }
        match details {
            Some(details) if !json => write(out, &assigned, &details),
            _ => write_json(out, &assigned),
        }
    }

    fn assignment(self, session: &Session) -> Result<Assignment, Failure> {
        let worth = match (self.worth.plan, self.worth.credits) {
            (Some(plan), _) => Worth::Plan(plan),
            (None, Some(credits)) => Worth::Credits(credits),
            // Cannot happen: clap requires one of them.
            (None, None) => return Err(Failure::Usage("--plan or --credits is missing".to_owned())),
        };
        let reason = match session.action().reason() {
            "" => None,
            text => Some(text.parse().map_err(|error: ReasonError| Failure::Usage(format!("--reason {error}")))?),
        };
        let Self { tx, account, despite_quote, .. } = self;
        Ok(Assignment { tx, account, worth, reason, despite_quote })
    }
}

fn write(out: &mut dyn Write, assigned: &AssignmentDocument, details: &AssignmentDetails) -> Result<(), Failure> {
    let headline = match (&details.paid, &details.used_for) {
        (_, Some(used_for)) => format!("The account already has this payment ({used_for}); nothing was credited."),
        (paid, None) => {
            format!("Added {} credits for {}.", assigned.amount_added, paid.as_deref().unwrap_or("the payment"))
        }
    };
    document::write(out, false, &headline, &details.account)
}
