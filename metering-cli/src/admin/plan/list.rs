//! `plan list`: the plans on sale, or all.

use std::io::Write;

use clap::Args;
use metering_admin::calls::plans::ListPlans;

use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::table;

/// List the plans that are on sale.
#[derive(Debug, Args)]
#[command(after_help = "\
`metering admin plan import` reads the JSON output.

Examples:
  metering admin plan list
  metering admin plan list --all --json > plans.json")]
pub(crate) struct ListArgs {
    /// Also list plans that are off sale.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    format: Format,
}

impl ListArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let mut found = session.administrator().await?.get::<ListPlans>(()).await?;
        found.plans.retain(|plan| self.all || plan.active);
        if self.format.json {
            return write_json(out, &found);
        }
        table!(out, &found.plans, |plan| {
            word("ID") => plan.id,
            number("CHAIN ID").optional(1) => plan.chain_id,
            number("PRICE") => plan.token_amount,
            word("TOKEN") => plan.token_symbol,
            word("KIND").optional(4) => plan.payment_kind.as_str(),
            amount("CREDITS") => plan.credits,
            amount("BONUS").optional(3) => plan.bonus_credits,
            word("ON SALE").optional(2) => if plan.active { "yes" } else { "no" },
            text("LABEL").optional(5) => plan.label,
        })
    }
}
