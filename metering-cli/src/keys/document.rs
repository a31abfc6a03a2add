//! Keys as the commands print them.

use std::io::Write;

use metering_core::access::BudgetReset;
use metering_core::wire::{KeyDocument, KeyState};

use crate::failure::Failure;
use crate::table::{table, write_pairs};

const ABSENT: &str = "-";

/// Writes a table of keys.
pub(crate) fn write_list(out: &mut dyn Write, keys: &[KeyDocument]) -> Result<(), Failure> {
    table!(out, keys, |key| {
        id("ID") => key.id,
        text("NAME") => key.name,
        word("SECRET").optional(5) => key.hint.as_deref().unwrap_or(ABSENT),
        state("STATE") => state(key.state),
        text("SCOPES").optional(6) => key.scopes,
        amount("USED") => key.usage,
        amount("LIMIT").optional(1) => key.limit.map_or_else(|| ABSENT.to_owned(), |limit| limit.to_string()),
        amount("LEFT").optional(3) => key.limit_remaining.map_or_else(|| ABSENT.to_owned(), |left| left.to_string()),
        word("RESET").optional(4) => key.limit_reset.map_or(ABSENT, BudgetReset::as_str),
        time("LAST USED").optional(2) => key.last_used_at.as_deref().unwrap_or(ABSENT),
        id("PARENT").optional(7) => key.parent_id.as_deref().unwrap_or(ABSENT),
    })
}

/// Writes a key below `headline`, if there is one.
pub(crate) fn write(out: &mut dyn Write, headline: &str, key: &KeyDocument) -> Result<(), Failure> {
    if !headline.is_empty() {
        writeln!(out, "{headline}\n")?;
    }
    let limit = match (key.limit, key.limit_reset) {
        (Some(limit), Some(reset)) => format!("{limit} {reset}"),
        (Some(limit), None) => limit.to_string(),
        (None, _) => "no limit".to_owned(),
    };
    let left = match (key.limit_remaining, key.limit_resets_at) {
        (Some(left), Some(at)) => format!("{left} until {at}"),
        (Some(left), None) => left.to_string(),
        (None, _) => ABSENT.to_owned(),
    };
    let alert = match key.alert_below {
        Some(below) => format!("below {below}"),
        None => "never".to_owned(),
    };
    let all_of = |list: &[String]| if list.is_empty() { "any".to_owned() } else { list.join(", ") };
    write_pairs(
        out,
        &[
            ("Key", &key.id),
            ("Name", &key.name),
            ("Secret", &key.hint.as_deref().unwrap_or(ABSENT)),
            ("State", &state(key.state)),
            ("Made by", &key.parent_id.as_deref().unwrap_or("the account itself")),
            ("Created", &key.created_at),
            ("Expires", &key.expires_at.map_or_else(|| "never".to_owned(), |at| at.to_string())),
            ("Scopes", &key.scopes),
            ("Routes", &all_of(&key.routes)),
            ("Networks", &all_of(&key.networks)),
            ("Limit", &limit),
            ("Left", &left),
            ("Alert", &alert),
            ("Requests per minute", &cap(key.requests_per_minute)),
            ("Requests per day", &cap(key.requests_per_day)),
            ("Tokens per minute", &cap(key.tokens_per_minute)),
            ("Requests at once", &cap(key.max_in_flight)),
            ("Used", &key.usage),
            ("Used today", &key.usage_daily),
            ("Used this week", &key.usage_weekly),
            ("Used this month", &key.usage_monthly),
            ("Last used", &key.last_used_at.as_deref().unwrap_or("never")),
        ],
    )
}

/// Whether a key can be used, in a word.
fn state(state: KeyState) -> &'static str {
    match state {
        KeyState::Active => "active",
        KeyState::Disabled => "disabled",
        KeyState::Expired => "expired",
        KeyState::Leaked => "leaked",
        KeyState::ParentInactive => "parent inactive",
    }
}

fn cap(requests: u32) -> String {
    if requests == 0 { "no limit of its own".to_owned() } else { requests.to_string() }
}
