//! Usage by day and by route.

use std::io::Write;

use serde::Deserialize;

use crate::client::money::amount::Amount;
use crate::client::usage::bars::Bars;
use crate::failure::Failure;
use crate::requests::with_model;
use crate::screen::Screen;
use crate::table::{Column, Table, table, write_pairs};

/// The fields read from the response to `GET /credits/usage/summary`.
#[derive(Debug, Deserialize)]
pub(super) struct Summary {
    credit_balance: Amount,
    window_days: u64,
    totals: Totals,
    /// Older services have these sums as `totals`.
    window: Option<Totals>,
    by_day: Vec<Day>,
    by_endpoint: Vec<Endpoint>,
    /// Older services do not send it.
    #[serde(default)]
    by_key: Vec<Key>,
}

#[derive(Debug, Deserialize)]
struct Totals {
    usage_events: u64,
    credits_used: Amount,
    credits_added: Amount,
}

#[derive(Debug, Deserialize)]
struct Day {
    day: String,
    usage_events: u64,
    credits_used: Amount,
}

#[derive(Debug, Deserialize)]
struct Endpoint {
    route_template: String,
    /// Only on routes whose models have their own prices.
    model: Option<String>,
    http_method: String,
    call_count: u64,
    credits_used: Amount,
}

#[derive(Debug, Deserialize)]
struct Key {
    key_id: String,
    key_name: String,
    call_count: u64,
    credits_used: Amount,
}

const BY_DAY: &[Column] = &[Column::word("DAY"), Column::number("CALLS"), Column::amount("CREDITS USED")];
impl Summary {
    pub(super) fn write(&self, top: usize, screen: Screen, out: &mut dyn Write) -> Result<(), Failure> {
        let window = self.window.as_ref().unwrap_or(&self.totals);
        write_pairs(
            out,
            &[
                ("Balance", &self.credit_balance),
                ("Days", &self.window_days),
                ("Calls", &window.usage_events),
                ("Used", &window.credits_used),
                ("Added", &window.credits_added),
            ],
        )?;
        if self.by_day.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        self.write_days(screen, out)?;
        writeln!(out)?;
        self.write_endpoints(top, out)?;
        // With a single key, the totals already show everything.
        if self.by_key.len() < 2 {
            return Ok(());
        }
        writeln!(out)?;
        self.write_keys(out)
    }

    fn write_keys(&self, out: &mut dyn Write) -> Result<(), Failure> {
        table!(out, &self.by_key, |Key { key_id, key_name, call_count, credits_used }| {
            id("KEY") => key_id,
            text("NAME") => key_name,
            number("CALLS").optional(1) => call_count,
            amount("CREDITS") => credits_used,
        })
    }

    /// The table of days, with a bar next to each.
    fn write_days(&self, screen: Screen, out: &mut dyn Write) -> Result<(), Failure> {
        let mut table = Table::new(BY_DAY);
        for day in &self.by_day {
            table.row([&day.day, &day.usage_events, &day.credits_used]);
        }
        let layout = table.layout(screen);
        let width = layout.lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        let bars = Bars::new(screen, width, self.by_day.iter().map(|day| &day.credits_used));
        // The first line is the headings, which have no bar.
        let amounts = std::iter::once(None).chain(self.by_day.iter().map(|day| Some(&day.credits_used)));
        for (line, amount) in layout.lines.iter().zip(amounts) {
            match amount.map(|amount| bars.bar(amount)).filter(|bar| !bar.is_empty()) {
                Some(bar) => writeln!(out, "{line:width$}  {bar}")?,
                None => writeln!(out, "{line}")?,
            }
        }
        match layout.note() {
            Some(note) => Ok(writeln!(out, "{note}")?),
            None => Ok(()),
        }
    }

    fn write_endpoints(&self, top: usize, out: &mut dyn Write) -> Result<(), Failure> {
        table!(out, self.by_endpoint.iter().take(top), |endpoint| {
            text("ROUTE") => with_model(&endpoint.route_template, endpoint.model.as_deref()),
            word("METHOD").optional(1) => endpoint.http_method,
            number("CALLS") => endpoint.call_count,
            amount("CREDITS") => endpoint.credits_used,
        })?;
        let more = self.by_endpoint.len().saturating_sub(top);
        if more > 0 {
            writeln!(out, "and {more} more; use --top to show them")?;
        }
        Ok(())
    }
}
