//! `metering balance`: what is left, and what was bought, granted and used.

use std::io::Write;

use clap::Args;
use serde::Deserialize;

use crate::client::amount::Amount;
use crate::client::documents::{Caps, Document};
use crate::client::session::ProfileArgs;
use crate::failure::Failure;
use crate::output::{Format, notice};
use crate::table::write_pairs;

/// Show the account's balance.
///
/// Exits with 0 at any balance, with a hint on stderr when nothing is left.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering balance
  metering balance --profile work --json")]
pub(crate) struct BalanceArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    format: Format,
}

/// What is read of the answer to `GET /credits/balance`.
#[derive(Debug, Deserialize)]
struct Balance {
    org_id: String,
    agent_name: String,
    email: Option<String>,
    payer_address: Option<String>,
    credit_balance: Amount,
    total_credits_purchased: Amount,
    total_credits_granted: Amount,
    total_credits_used: Amount,
    rate_limits: Caps,
}

impl BalanceArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let session = self.profile.open()?;
        let document: Document<Balance> = Document::get(&session.client()?, "/credits/balance").await?;
        if self.format.json {
            document.write_json(out)?;
        } else {
            document.content.write(out)?;
        }
        out.flush()?;
        if document.content.credit_balance.is_used_up() {
            notice("No credits are left: `metering plans` shows what is for sale, `metering topup` pays.");
        }
        Ok(())
    }
}

impl Balance {
    fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let none = "-";
        write_pairs(
            out,
            &[
                ("balance", &self.credit_balance),
                ("purchased", &self.total_credits_purchased),
                ("granted", &self.total_credits_granted),
                ("used", &self.total_credits_used),
                ("requests", &self.rate_limits),
                ("account", &self.org_id),
                ("agent name", &self.agent_name),
                ("email", &self.email.as_deref().unwrap_or(none)),
                ("payer", &self.payer_address.as_deref().unwrap_or(none)),
            ],
        )
    }
}
