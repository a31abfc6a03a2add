//! `metering admin refill`: recurring credits.

use std::io::Write;

use clap::Args;
use metering_admin::calls::refills::{RemoveRefill, SetRefill, ShowRefill};
use metering_admin::wire::{RefillDocument, RefillRequest};
use metering_core::Credits;
use metering_core::access::BudgetReset;
use metering_core::money::Refill;

use super::session::Session;
use crate::commands::commands;
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::output::{Format, write_json};

commands! {
    /// Give accounts credits every day, week or month, up to a cap.
    #[command(after_help = "\
Example:
  metering admin refill set --credits 2 --every month --cap 2")]
    RefillArgs with session {
        Set(SetArgs),
        Show(ShowArgs),
        Off(OffArgs),
    }
}

/// Set the refill rule, replacing the current one.
#[derive(Debug, Args)]
#[command(after_help = "\
A running server refills accounts within a minute, once in each period; several servers share the work. Every account
that is not revoked gets --credits, but no more than it takes to reach --cap. New accounts are refilled from the next
period on. Accounts already processed in the current period are not refilled again in it.

Examples:
  metering admin refill set --credits 2 --every month --cap 2
  metering admin refill set --credits 0.5 --every day --cap 3 --json")]
struct SetArgs {
    /// The maximum credits that an account gets in a period.
    #[arg(long, value_name = "CREDITS")]
    credits: Credits,
    /// The period, in UTC: day, week (from Monday) or month.
    #[arg(long, value_name = "PERIOD", value_parser = period)]
    every: BudgetReset,
    /// The balance up to which accounts are refilled. Credits held for requests in flight count towards it.
    #[arg(long, value_name = "CREDITS")]
    cap: Credits,
    #[command(flatten)]
    format: Format,
}

/// Show how accounts are refilled.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering admin refill show")]
struct ShowArgs {
    #[command(flatten)]
    format: Format,
}

/// Stop refilling accounts. They keep the credits that they have.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering admin refill off --reason \"End of the trial\"")]
struct OffArgs {
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    format: Format,
}

fn period(text: &str) -> Result<BudgetReset, &'static str> {
    match text {
        "day" | "daily" => Ok(BudgetReset::Daily),
        "week" | "weekly" => Ok(BudgetReset::Weekly),
        "month" | "monthly" => Ok(BudgetReset::Monthly),
        _ => Err("must be day, week or month"),
    }
}

fn noun(every: BudgetReset) -> &'static str {
    match every {
        BudgetReset::Daily => "day",
        BudgetReset::Weekly => "week",
        BudgetReset::Monthly => "month",
    }
}

impl SetArgs {
    async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let refill = Refill { credits: self.credits, every: self.every, cap: self.cap };
        // Name the flag here; the store and the server only know the fields.
        refill.validate().map_err(|error| Failure::Usage(format!("--{error}")))?;
        let wanted = RefillRequest { refill, reason: String::new() };
        session.administrator_or_new().await?.call::<SetRefill>((), wanted).await?;
        write(out, &self.format, Some(refill))
    }
}

impl ShowArgs {
    async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let refill = session.administrator().await?.get::<ShowRefill>(()).await?.refill;
        write(out, &self.format, refill)
    }
}

impl OffArgs {
    async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        self.confirmation.ask("Stop refilling all accounts?").await?;
        administrator.act::<RemoveRefill>(()).await?;
        write(out, &self.format, None)
    }
}

fn write(out: &mut dyn Write, format: &Format, refill: Option<Refill>) -> Result<(), Failure> {
    if format.json {
        return write_json(out, &RefillDocument { refill });
    }
    let Some(Refill { credits, every, cap }) = refill else {
        return Ok(writeln!(out, "Accounts are not refilled.")?);
    };
    let unit = if credits.to_string() == "1" { "credit" } else { "credits" };
    Ok(writeln!(out, "Every {} (UTC), accounts get {credits} {unit}, up to a balance of {cap}.", noun(every))?)
}
