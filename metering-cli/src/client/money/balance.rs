//! `metering balance`: the balance, and the credits purchased, granted and used.

use std::fmt::Display;
use std::io::Write;

use clap::Args;
use serde::Deserialize;

use crate::client::money::amount::Amount;
use crate::client::session::ProfileArgs;
use crate::client::session::documents::{Caps, Document};
use crate::failure::Failure;
use crate::output::{Format, notice};
use crate::table::write_pairs;

/// Show the account's balance.
///
/// Credits that are held for requests in flight are not part of the balance; `metering requests` lists those requests.
/// Exits with code 0 at any balance; prints a hint on stderr if no credits are left.
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

/// The fields read from the response to `GET /credits/balance`.
#[derive(Debug, Deserialize)]
struct Balance {
    org_id: String,
    agent_name: String,
    email: Option<String>,
    payer_address: Option<String>,
    credit_balance: Amount,
    /// Services that hold no credits leave it out.
    credits_held: Option<Amount>,
    total_credits_purchased: Amount,
    total_credits_granted: Amount,
    total_credits_used: Amount,
    /// Services without webhooks leave it out.
    alert_below: Option<Amount>,
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
            notice("No credits left: `metering plans` lists the plans, `metering topup` buys credits.");
        }
        Ok(())
    }
}

impl Balance {
    fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let none = "-";
        let held = self.credits_held.as_ref().filter(|held| !held.is_used_up());
        let held = held.map(|held| format!("{held} for requests whose cost is not known yet"));
        let mut pairs: Vec<(&str, &dyn Display)> = vec![("balance", &self.credit_balance)];
        if let Some(held) = &held {
            pairs.push(("held", held));
        }
        if let Some(below) = &self.alert_below {
            pairs.push(("alert below", below));
        }
        let email = self.email.as_deref().unwrap_or(none);
        let payer = self.payer_address.as_deref().unwrap_or(none);
        let others: [(&str, &dyn Display); 8] = [
            ("purchased", &self.total_credits_purchased),
            ("granted", &self.total_credits_granted),
            ("used", &self.total_credits_used),
            ("requests", &self.rate_limits),
            ("account", &self.org_id),
            ("agent name", &self.agent_name),
            ("email", &email),
            ("payer", &payer),
        ];
        pairs.extend(others);
        write_pairs(out, &pairs)
    }
}
