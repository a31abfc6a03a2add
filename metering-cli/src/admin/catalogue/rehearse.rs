//! `catalogue rehearse`: the cost of past usage with another catalogue, and the accounts that would have run out.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use metering_admin::Administration;
use metering_admin::wire::{RehearsalDocument, RehearsedUsage, RunOut};
use metering_sql::transfer::Section;

use super::source::{Source, WithArgs, read};
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::progress::{Progress, Unit};
use crate::table::{table, write_pairs};

/// Show what past usage would have cost with a catalogue file, and which accounts would have run out. Changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads the daily totals of the store, also while servers use it. Only totals are kept, so an amount is
- exact where the price is the same for every request, or changes by the same factor for all, and the catalogue in force
  is known (--with): its price tells how many requests were refunded;
- estimated otherwise, if the new price is fixed: every recorded request counts as delivered. A price by usage whose
  amounts all change by one factor is estimated too: it is rounded up per day, not per request;
- unknown where the new price depends on what was not recorded, such as a parameter: what was charged counts unchanged.
Requests to routes that the new catalogue does not have would be refused (404), and cost nothing.

Accounts run out on the first day with usage at whose end nothing would be left. Credits of a day count from its start.
Their later usage still counts in the sums, although it would have been refused.

Examples:
  metering admin catalogue rehearse new-routes.json --with routes.json --days 30
  metering admin catalogue rehearse new-routes.json --by account --top 50
  metering admin catalogue rehearse new-routes.json --config /etc/metering/metering.toml --json")]
pub(crate) struct RehearseArgs {
    /// The new catalogue file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    with: WithArgs,
    /// How many UTC days of usage to take, including today.
    #[arg(long, value_name = "N", default_value = "30", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// Which table to print. JSON has both.
    #[arg(long, value_name = "WHAT", default_value = "route")]
    by: By,
    /// How many routes and accounts to list. The totals are over all.
    #[arg(long, value_name = "N", default_value = "20")]
    top: u32,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum By {
    /// Routes whose sum changes most.
    Route,
    /// Accounts whose sum changes most.
    Account,
}

impl RehearseArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        // Before opening the store: an invalid file is the most likely failure.
        let new = read(&self.file)?;
        let database = session.database().await?;
        let administration = Administration::new(database.store());
        let old = self.with.read_or(session, &administration).await?;
        let top = usize::try_from(self.top).unwrap_or(usize::MAX);
        let old_catalogue = old.as_ref().map(|old| &old.catalogue);
        let progress = Progress::new();
        progress.begin("Rehearsing", Unit::Things("accounts"), database.count(Section::Accounts).await?);
        let document =
            administration.rehearse_with_progress(&new.catalogue, old_catalogue, self.days, top, &progress).await;
        progress.end();
        let document = document?;
        if self.format.json {
            return write_json(out, &document);
        }
        self.write(out, &document, old.as_ref())
    }

    fn write(&self, out: &mut dyn Write, document: &RehearsalDocument, old: Option<&Source>) -> Result<(), Failure> {
        let totals = &document.totals;
        let days = format!("{} to {}", document.first_day, document.last_day);
        let unknown = match totals.unknown_calls {
            0 => "0".to_owned(),
            calls => format!("{calls}, counted as the {} charged", totals.credits_unknown),
        };
        let in_force = old.map_or("not known; name it with --with FILE for exact amounts", |old| &old.name);
        write_pairs(
            out,
            &[
                ("Days", &days),
                ("In force", &in_force),
                ("Accounts", &document.accounts),
                ("Calls", &totals.calls),
                ("Credits before", &totals.credits_before),
                ("Credits after", &totals.credits_after),
                ("Difference", &totals.credits_difference),
                ("Estimated calls", &totals.estimated_calls),
                ("Unknown calls", &unknown),
                ("Removed calls", &totals.removed_calls),
                ("Run out", &document.run_outs),
            ],
        )?;
        writeln!(out)?;
        match self.by {
            By::Route => table!(out, &document.by_route, |route| {
                text("ROUTE") => route.route_template,
                word("METHOD").optional(3) => route.http_method,
                number("CALLS").optional(2) => route.usage.calls,
                amount("BEFORE") => route.usage.credits_before,
                amount("AFTER") => route.usage.credits_after,
                amount("DIFFERENCE") => route.usage.credits_difference,
                text("NOTE").optional(4) => note(&route.usage),
            }),
            By::Account => table!(out, &document.by_account, |account| {
                id("ACCOUNT") => account.org_id,
                text("AGENT NAME").optional(1) => account.agent_name,
                number("CALLS").optional(2) => account.usage.calls,
                amount("BEFORE") => account.usage.credits_before,
                amount("AFTER") => account.usage.credits_after,
                amount("DIFFERENCE") => account.usage.credits_difference,
                text("NOTE").optional(4) => note(&account.usage),
            }),
        }?;
        write_run_out(out, &document.run_out)
    }
}

/// The accounts that would have run out, if any.
fn write_run_out(out: &mut dyn Write, run_outs: &[RunOut]) -> Result<(), Failure> {
    if run_outs.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    table!(out, run_outs, |run_out| {
        id("ACCOUNT") => run_out.org_id,
        text("AGENT NAME").optional(1) => run_out.agent_name,
        word("RUNS OUT") => run_out.day,
        word("RAN OUT").optional(2) => run_out.day_before.map_or_else(|| "-".to_owned(), |day| day.to_string()),
        amount("BALANCE AFTER") => run_out.balance_after,
    })
}

/// How reliable a row's amount is.
fn note(usage: &RehearsedUsage) -> String {
    let parts =
        [(usage.estimated_calls, "estimated"), (usage.unknown_calls, "unknown"), (usage.removed_calls, "removed")];
    let noted = parts.into_iter().filter(|(calls, _)| *calls > 0);
    let texts =
        noted.map(|(calls, word)| if calls == usage.calls { word.to_owned() } else { format!("{calls} {word}") });
    texts.collect::<Vec<_>>().join(", ")
}
