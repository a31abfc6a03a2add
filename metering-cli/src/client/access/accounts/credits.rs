//! `accounts give` and `accounts take`: credits that move between the account and a child.

use std::io::Write;

use clap::Args;
use metering_client::calls::child_accounts::{MoveCredits, OfChild};
use metering_core::charging::IdempotencyKey;
use metering_core::wire::{MoveCreditsRequest, MovedCreditsResponse};
use metering_core::{AccountId, Credits};

use crate::client::access::keys::issued::attempts;
use crate::client::charging::call::generate_key;
use crate::client::session::ProfileArgs;
use crate::client::session::documents::Document;
use crate::failure::Failure;
use crate::output::Format;

/// What both commands take.
#[derive(Debug, Args)]
struct Moved {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The child account.
    #[arg(value_name = "ORG")]
    org: AccountId,
    /// How many credits.
    #[arg(value_name = "CREDITS")]
    credits: Credits,
    /// Repeat a run whose response was lost; the error message has the value. The credits move once.
    #[arg(long, value_name = "KEY", value_parser = IdempotencyKey::parse)]
    idempotency_key: Option<IdempotencyKey>,
    #[command(flatten)]
    format: Format,
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
Its balance must cover them.

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
        let of = OfChild { id: self.org.to_string() };
        let once = self.idempotency_key.unwrap_or_else(generate_key);
        let client = self.profile.open()?.client()?.with_idempotency_key(once.clone());
        let response = attempts(&once, async || client.call::<MoveCredits>(&of, &request).await).await?;
        let document: Document<MovedCreditsResponse> = Document::of(response)?;
        if self.format.json {
            return document.write_json(out);
        }
        let MovedCreditsResponse { credit_balance, data } = &document.content;
        Ok(writeln!(out, "Account {} has {} credits; yours has {credit_balance}.", data.org_id, data.credit_balance)?)
    }
}
