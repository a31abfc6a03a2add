//! Recent activity, newest first.

use std::io::Write;

use serde::Deserialize;

use crate::client::money::amount::Amount;
use crate::failure::Failure;
use crate::requests::with_model;
use crate::table::table;

/// The fields read from the response to `GET /credits/usage`.
#[derive(Debug, Deserialize)]
pub(super) struct Activity {
    transactions: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    amount: Amount,
    #[serde(rename = "type")]
    kind: String,
    description: Option<String>,
    http_method: Option<String>,
    route_template: Option<String>,
    model: Option<String>,
    request_path: Option<String>,
    client_source: Option<String>,
    calls: Option<u64>,
    plan_id: Option<String>,
    created_at: String,
}

impl Activity {
    pub(super) fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        table!(out, &self.transactions, |entry| {
            time("TIME") => entry.created_at,
            word("TYPE") => entry.kind(),
            text("ROUTE") => entry.subject(),
            word("SOURCE").optional(2) => entry.client_source.as_deref().unwrap_or_default(),
            number("CALLS").optional(1) => entry.calls(),
            amount("AMOUNT") => entry.amount.signed(),
        })
    }
}

impl Entry {
    /// Its kind, by the service's name for it, or in plain words where that name is not clear.
    fn kind(&self) -> &str {
        match &*self.kind {
            "hold_expired" => "charged on expiry",
            "hold_released" => "released",
            kind => kind,
        }
    }

    /// Only usage entries count calls.
    fn calls(&self) -> String {
        let calls = self.calls.filter(|_| self.route_template.is_some());
        calls.map(|calls| calls.to_string()).unwrap_or_default()
    }

    /// The route of a usage entry; of any other entry, the plan or its description.
    fn subject(&self) -> String {
        let path = self.request_path.as_deref().or(self.route_template.as_deref());
        let path = path.map(|path| with_model(path, self.model.as_deref()));
        match (&self.http_method, path) {
            (Some(method), Some(path)) => format!("{method} {path}"),
            (None, Some(path)) => path,
            (_, None) => self.plan_id.clone().or_else(|| self.description.clone()).unwrap_or_default(),
        }
    }
}
