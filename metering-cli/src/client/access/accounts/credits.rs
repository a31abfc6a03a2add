//! `accounts give` and `accounts take`: credits that move between the account and a child.

use std::io::Write;

use clap::Args;
use metering_client::calls::child_accounts::MoveCredits;
use metering_core::Credits;
use metering_core::charging::IdempotencyKey;
use metering_core::wire::{MoveCreditsRequest, MovedCreditsResponse};

use super::child::ChildArgs;
use crate::client::access::keys::issued::attempts;
use crate::client::charging::call::generate_key;
use crate::failure::Failure;

/// What both commands take.
#[derive(Debug, Args)]
struct Moved {
    #[command(flatten)]
    child: ChildArgs,
    /// How many credits.
    #[arg(value_name = "CREDITS")]
    credits: Credits,
    /// Repeat a run whose response was lost; the error message has the value. The credits move once.
    #[arg(long, value_name = "KEY", value_parser = IdempotencyKey::parse)]
    idempotency_key: Option<IdempotencyKey>,
}

/// Give credits to a child account.
#[derive(Debug, Args)]
#[command(after_help = "\
Your balance must cover them.

Example:
  metering accounts give org_0123456789abcdefghij 5")]
pub(super) struct GiveArgs {
    #[command(flatten)]
    moved: Moved,
}

/// Take credits back from a child account.
#[derive(Debug, Args)]
#[command(after_help = "\
At most what you gave, less what you took back, and its balance must cover them. What it bought stays its own.

Example:
  metering accounts take org_0123456789abcdefghij 2.5")]
pub(super) struct TakeArgs {
    #[command(flatten)]
    moved: Moved,
}

impl GiveArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let credits = self.moved.credits;
        self.moved.run(Some(credits), out).await
    }
}

impl TakeArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let credits = self.moved.credits.checked_neg();
        self.moved.run(credits, out).await
    }
}

impl Moved {
    async fn run(self, credits: Option<Credits>, out: &mut dyn Write) -> Result<(), Failure> {
        if !self.credits.is_positive() {
            return Err(Failure::Usage("the credits must be above 0".to_owned()));
        }
        let request = MoveCreditsRequest { credits };
        let of = self.child.id();
        let once = self.idempotency_key.unwrap_or_else(generate_key);
        let client = self.child.options.client()?.with_idempotency_key(once.clone());
        let response = attempts(&once, async || client.call::<MoveCredits>(&of, &request).await).await?;
        self.child.options.print::<MovedCreditsResponse>(response, out, |moved, out| {
            let (id, credits, own) = (&moved.data.org_id, &moved.data.credit_balance, &moved.credit_balance);
            Ok(writeln!(out, "Account {id} has {credits} credits; yours has {own}.")?)
        })
    }
}
