//! `metering balance`: the balance, and the credits purchased, granted and used.

use std::fmt::Display;
use std::io::Write;

use clap::Args;
use metering_client::Client;
use metering_core::money::Runway;
use metering_core::{Clock, SystemClock};
use serde::Deserialize;

use crate::client::money::amount::Amount;
use crate::client::money::runway::Recent;
use crate::client::session::ProfileArgs;
use crate::client::session::documents::{Caps, Document};
use crate::failure::Failure;
use crate::output::{Format, notice};
use crate::table::write_pairs;

/// Show the account's balance, and how long it lasts at the pace of the last seven days.
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

/// The usage from which the pace is computed.
const RECENT: &str = "/credits/usage/summary?days=30";

/// The fields read from the response to `GET /credits/balance`.
#[derive(Debug, Deserialize)]
struct Balance {
    org_id: String,
    agent_name: String,
    email: Option<String>,
    payer_address: Option<String>,
    credit_balance: Amount,
    /// Services without holds omit it.
    credits_held: Option<Amount>,
    total_credits_purchased: Amount,
    total_credits_granted: Amount,
    total_credits_used: Amount,
    /// Services without webhooks omit it.
    alert_below: Option<Amount>,
    rate_limits: Caps,
    /// Older services omit it.
    #[serde(default)]
    tokens_per_minute: u64,
}

impl BalanceArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        let document: Document<Balance> = Document::get(&client, "/credits/balance").await?;
        if self.format.json {
            document.write_json(out)?;
        } else {
            let balance = &document.content;
            balance.write(lasts(&client, &balance.credit_balance).await, out)?;
        }
        out.flush()?;
        if document.content.credit_balance.is_used_up() {
            notice("No credits left: `metering plans` lists the plans, `metering topup` buys credits.");
        }
        Ok(())
    }
}

/// How long the balance lasts, if known. The command works without it: the key may lack the scope.
async fn lasts(client: &Client, balance: &Amount) -> Option<Runway> {
    if balance.is_used_up() {
        return None;
    }
    let recent: Document<Recent> = Document::get(client, RECENT).await.ok()?;
    recent.content.runway(balance, SystemClock.now().day())
}

impl Balance {
    fn write(&self, lasts: Option<Runway>, out: &mut dyn Write) -> Result<(), Failure> {
        let none = "-";
        let held = self.credits_held.as_ref().filter(|held| !held.is_used_up());
        let held = held.map(|held| format!("{held} for requests whose cost is not known yet"));
        let mut pairs: Vec<(&str, &dyn Display)> = vec![("Balance", &self.credit_balance)];
        if let Some(lasts) = &lasts {
            pairs.push(("Lasts", lasts));
        }
        if let Some(held) = &held {
            pairs.push(("Held", held));
        }
        if let Some(below) = &self.alert_below {
            pairs.push(("Alert below", below));
        }
        let email = self.email.as_deref().unwrap_or(none);
        let payer = self.payer_address.as_deref().unwrap_or(none);
        let others: [(&str, &dyn Display); 8] = [
            ("Purchased", &self.total_credits_purchased),
            ("Granted", &self.total_credits_granted),
            ("Used", &self.total_credits_used),
            ("Requests", &self.rate_limits),
            ("Account", &self.org_id),
            ("Agent name", &self.agent_name),
            ("Email", &email),
            ("Payer", &payer),
        ];
        pairs.extend(others);
        if self.tokens_per_minute > 0 {
            pairs.push(("Tokens per minute", &self.tokens_per_minute));
        }
        write_pairs(out, &pairs)
    }
}
