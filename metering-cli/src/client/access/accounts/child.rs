//! Commands about one child account: limits, rotate, close, give and take.

use std::io::Write;

use clap::Args;
use metering_client::Response;
use metering_client::calls::child_accounts::{
    ChangeChildAccount, CloseChildAccount, MoveCredits, OfChild, RotateChildAccount,
};
use metering_core::access::RateLimits;
use metering_core::charging::IdempotencyKey;
use metering_core::wire::call::Call;
use metering_core::wire::{
    ChangeChildRequest, ChildAccountResponse, ClosedChildResponse, MoveCreditsRequest, MovedCreditsResponse,
};
use metering_core::{AccountId, Credits};

use super::create;
use crate::client::access::keys::issued::attempts;
use crate::client::charging::call::generate_key;
use crate::client::session::options::CallOptions;
use crate::confirm::confirm;
use crate::failure::Failure;

/// Which child account, and how to print the response.
#[derive(Debug, Args)]
pub(super) struct ChildArgs {
    /// The child account.
    #[arg(value_name = "ORG")]
    org: AccountId,
    #[command(flatten)]
    pub(super) options: CallOptions,
}

impl ChildArgs {
    pub(super) fn id(&self) -> OfChild {
        OfChild { id: self.org.to_string() }
    }
}

/// A child account, for irreversible actions.
#[derive(Debug, Args)]
pub(super) struct ConfirmedArgs {
    #[command(flatten)]
    pub(super) child: ChildArgs,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
}

impl ConfirmedArgs {
    /// Makes a call if it is confirmed. `what` begins the question.
    pub(super) async fn call<C>(&self, what: &str) -> Result<Response, Failure>
    where
        C: Call<Parameters = OfChild, Body = ()>,
    {
        let client = self.child.options.client()?;
        if !self.yes {
            confirm(&format!("{what} account {}?", self.child.org)).await?;
        }
        Ok(client.call::<C>(&self.child.id(), &()).await?)
    }
}

/// Change the limits of a child account, to at most those of your account.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes effect immediately.

Examples:
  metering accounts limits org_0123456789abcdefghij --per-minute 60 --per-day 10000
  metering accounts limits org_0123456789abcdefghij --tokens-per-minute 200000")]
pub(super) struct LimitsArgs {
    #[command(flatten)]
    child: ChildArgs,
    /// Requests per calendar minute; 0 for no limit.
    #[arg(long, value_name = "N", requires = "per_day", required_unless_present = "tokens_per_minute")]
    per_minute: Option<u32>,
    /// Requests per UTC day; 0 for no limit.
    #[arg(long, value_name = "N", requires = "per_minute")]
    per_day: Option<u32>,
    /// Tokens per calendar minute, on routes that count them; 0 for no limit.
    #[arg(long, value_name = "N")]
    tokens_per_minute: Option<u32>,
}

impl LimitsArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let limits = self.per_minute.zip(self.per_day);
        let rate_limits = limits.map(|(minute, day)| RateLimits::per_minute(minute).and_per_day(day));
        let request = ChangeChildRequest { rate_limits, tokens_per_minute: self.tokens_per_minute };
        let response = self.child.options.client()?.call::<ChangeChildAccount>(&self.child.id(), &request).await?;
        self.child.options.print::<ChildAccountResponse>(response, out, |changed, out| {
            Ok(writeln!(out, "The limits of account {} are changed.", changed.data.org_id)?)
        })
    }
}

/// Replace the keys of a child account whose first key is lost, and print the new one, once.
#[derive(Debug, Args)]
#[command(after_help = "\
The old key stops working immediately, and so does every key of the account that could manage keys. Asks for confirmation,
unless --yes is given.

Example:
  metering accounts rotate org_0123456789abcdefghij --yes")]
pub(super) struct RotateArgs {
    #[command(flatten)]
    of: ConfirmedArgs,
}

impl RotateArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let response = self.of.call::<RotateChildAccount>("Replace the keys of").await?;
        create::write(&response, self.of.child.options.json(), out)
    }
}

/// Close a child account: its credits return to yours, and its keys stop working.
#[derive(Debug, Args)]
#[command(after_help = "\
Refused while the account has credits that you did not give. Asks for confirmation, unless --yes is given.

Example:
  metering accounts close org_0123456789abcdefghij --yes")]
pub(super) struct CloseArgs {
    #[command(flatten)]
    of: ConfirmedArgs,
}

impl CloseArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let response = self.of.call::<CloseChildAccount>("Permanently close").await?;
        self.of.child.options.print::<ClosedChildResponse>(response, out, |closed, out| {
            Ok(writeln!(out, "Closed; {} credits came back.", closed.credits_returned)?)
        })
    }
}

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
