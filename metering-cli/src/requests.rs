//! Requests that were charged, or whose credits are or were held, as `metering requests` and `metering admin request` print them.

use std::io::Write;

use metering_core::wire::{RequestDocument, RequestState};

use crate::failure::Failure;
use crate::table::{table, write_pairs};

const ABSENT: &str = "-";

/// A route, with the model where models have their own prices.
pub(crate) fn with_model(route: &str, model: Option<&str>) -> String {
    model.map_or_else(|| route.to_owned(), |model| format!("{route} · {model}"))
}

/// Writes a table of requests whose credits are held.
pub(crate) fn write_list<'r>(
    out: &mut dyn Write,
    requests: impl IntoIterator<Item = &'r RequestDocument>,
) -> Result<(), Failure> {
    let mut requests = requests.into_iter().peekable();
    if requests.peek().is_none() {
        return Ok(writeln!(out, "Nothing is held: no request waits for its cost.")?);
    }
    table!(out, requests, |request| {
        id("REQUEST") => request.id,
        text("ROUTE") => route(request),
        amount("HELD") => request.held,
        time("ACCEPTED").optional(2) => request.created_at,
        time("LEASE ENDS").optional(1) => request.expires_at,
    })
}

/// Writes a request, below lines about its account, if there are any.
pub(crate) fn write(
    out: &mut dyn Write,
    about: &[(&str, &dyn std::fmt::Display)],
    request: &RequestDocument,
) -> Result<(), Failure> {
    let upstream: Vec<(&str, &dyn std::fmt::Display)> =
        request.upstream.iter().map(|name| ("Upstream", name as &dyn std::fmt::Display)).collect();
    if let Some(explanation) = &request.explanation {
        let lines: [(&str, &dyn std::fmt::Display); 5] = [
            ("Request", &request.id),
            ("Route", &route(request)),
            ("Charged", &request.charged),
            ("At", &request.created_at),
            ("Why", explanation),
        ];
        return write_pairs(out, &[about, &lines, &upstream[..]].concat());
    }
    let settled = request.settled_at.map_or_else(|| ABSENT.to_owned(), |at| at.to_string());
    let lines: [(&str, &dyn std::fmt::Display); 10] = [
        ("Request", &request.id),
        ("Route", &route(request)),
        ("State", &state(request.state)),
        ("Held", &request.held),
        ("Charged", &request.charged),
        ("Released", &request.released),
        ("Why", &reason(request.settled_by.as_deref())),
        ("Accepted", &request.created_at),
        ("Lease ends", &request.expires_at),
        ("Settled", &settled),
    ];
    write_pairs(out, &[about, &lines, &upstream[..]].concat())
}

fn route(request: &RequestDocument) -> String {
    format!("{} {}", request.http_method, request.request_path)
}

const fn state(state: RequestState) -> &'static str {
    match state {
        RequestState::Held => "held: its cost is not known yet",
        RequestState::Captured => "charged",
        RequestState::Released => "released: it cost nothing",
    }
}

/// Why a request was settled. An unknown reason is shown verbatim.
fn reason(settled_by: Option<&str>) -> &str {
    match settled_by {
        None => ABSENT,
        Some("report") => "the response reported its cost",
        Some("no_report") => "the response did not report its cost",
        Some("release") => "it was not served, or its response was an error",
        Some("expiry") => "its cost was not reported before its lease ended",
        Some(other) => other,
    }
}
