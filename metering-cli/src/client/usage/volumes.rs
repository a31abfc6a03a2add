//! Requests of the month to routes with volume tiers.

use std::io::Write;

use serde::Deserialize;

use crate::client::money::amount::Amount;
use crate::failure::Failure;
use crate::table::{table, write_pairs};

/// The fields read from the response to `GET /credits/usage/volumes`.
#[derive(Debug, Deserialize)]
pub(super) struct Volumes {
    month: String,
    resets_at: String,
    routes: Vec<Route>,
}

#[derive(Debug, Deserialize)]
struct Route {
    route_template: String,
    http_method: String,
    call_count: u32,
    next_price: Amount,
    free_calls_left: u32,
}

impl Volumes {
    pub(super) fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        write_pairs(out, &[("Month", &self.month), ("Resets at", &self.resets_at)])?;
        writeln!(out)?;
        if self.routes.is_empty() {
            writeln!(out, "No route of this service has volume tiers.")?;
            return Ok(());
        }
        table!(out, &self.routes, |Route { route_template, http_method, call_count, next_price, free_calls_left }| {
            text("ROUTE") => route_template,
            word("METHOD").optional(1) => http_method,
            number("CALLS") => call_count,
            number("FREE CALLS LEFT") => free_calls_left,
            number("NEXT PRICE") => next_price,
        })
    }
}
