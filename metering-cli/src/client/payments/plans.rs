//! `metering plans`: lists the plans on sale.

use std::fmt::Display;
use std::io::Write;

use clap::Args;
use serde::Deserialize;

use crate::client::money::amount::Amount;
use crate::client::session::options::CallOptions;
use crate::failure::Failure;
use crate::output::notice;
use crate::table::{table, write_pairs};

/// List the plans on sale.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering plans
  metering plans --url https://api.example.com --json")]
pub(crate) struct PlansArgs {
    #[command(flatten)]
    options: CallOptions,
}

/// The fields read from the response to `GET /credits/plans`.
#[derive(Debug, Deserialize)]
struct Plans {
    plans: Vec<Plan>,
    #[serde(default)]
    chains: Vec<Chain>,
    #[serde(default)]
    terms_url: String,
}

#[derive(Debug, Deserialize)]
struct Plan {
    id: String,
    chain_id: u64,
    token_symbol: String,
    credits: Amount,
    bonus_credits: Amount,
    token_amount: String,
    #[serde(default)]
    label: String,
    discount_percent: Option<u64>,
    /// The purchases that it covers, in words: each is an alternative. Older servers omit it.
    #[serde(default)]
    buys: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Chain {
    chain_id: u64,
    name: String,
}

impl PlansArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let response = self.options.open()?.anonymous().get("/credits/plans").await?;
        self.options.print::<Plans>(response, out, Plans::write)
    }
}

impl Plans {
    fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.plans.is_empty() {
            notice("No plans are on sale.");
        }
        table!(out, &self.plans, |plan| {
            word("PLAN") => plan.id,
            text("CHAIN") => self.chain_name(plan.chain_id),
            word("PRICE") => format!("{} {}", plan.token_amount, plan.token_symbol),
            amount("CREDITS") => plan.credits,
            amount("BONUS").optional(2) => plan.bonus_credits,
            number("DISCOUNT").optional(3) =>
                plan.discount_percent.map(|percent| format!("{percent} %")).unwrap_or_default(),
            text("LABEL").optional(1) => plan.label,
            text("BUYS").optional(4) => plan.buys.join(" or "),
        })?;
        if !self.terms_url.is_empty() {
            writeln!(out)?;
            write_pairs(out, &[("Terms", &self.terms_url as &dyn Display)])?;
        }
        Ok(())
    }

    /// The name with the id: `--chain` takes both, but only ids are unique.
    fn chain_name(&self, chain_id: u64) -> String {
        let named = self.chains.iter().find(|chain| chain.chain_id == chain_id && !chain.name.is_empty());
        named.map_or_else(|| chain_id.to_string(), |chain| format!("{} ({chain_id})", chain.name))
    }
}
