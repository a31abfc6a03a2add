//! `plan list`: the plans on sale, or all.

use std::io::Write;

use clap::Args;
use metering_admin::calls::plans::ListPlans;
use metering_core::payments::Plan;
use serde::Serialize;

use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::{Column, Table};

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

#[derive(Debug, Serialize)]
struct Document {
    plans: Vec<Plan>,
}

const COLUMNS: &[Column] = &[
    Column::word("ID"),
    Column::number("CHAIN ID").optional(1),
    Column::number("PRICE"),
    Column::word("TOKEN"),
    Column::word("KIND").optional(4),
    Column::amount("CREDITS"),
    Column::amount("BONUS").optional(3),
    Column::word("ON SALE").optional(2),
    Column::text("LABEL").optional(5),
];

impl ListArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let mut plans = session.administrator().await?.get::<ListPlans>(()).await?.plans;
        plans.retain(|plan| self.all || plan.active);
        if self.format.json {
            return write_json(out, &Document { plans });
        }
        let mut table = Table::new(COLUMNS);
        for plan in &plans {
            table.row([
                &plan.id,
                &plan.chain_id,
                &plan.token_amount,
                &plan.token_symbol,
                &plan.payment_kind.as_str(),
                &plan.credits,
                &plan.bonus_credits,
                &if plan.active { "yes" } else { "no" },
                &plan.label,
            ]);
        }
        table.write(out)
    }
}
