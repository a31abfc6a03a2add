//! Who a key belongs to, and its limits: what is not allowed here is replaced, and listed.

use super::{AgentHubKey, Cell};
use crate::access::account::{AccountId, AgentName, Email, RateLimits};
use crate::clock::Timestamp;
use crate::imports::account::derived_id;
use crate::imports::oddity::{Oddity, OddityKind};
use crate::imports::time::parse_time;

/// A time, or `otherwise`.
pub(super) fn time(text: Option<&str>, otherwise: Timestamp, subject: &str, oddities: &mut Vec<Oddity>) -> Timestamp {
    let text = text.unwrap_or_default();
    parse_time(text).unwrap_or_else(|| {
        let detail = format!("{text:?} is not a time; {otherwise} is used");
        oddities.push(Oddity::new(subject, OddityKind::InvalidTime, detail));
        otherwise
    })
}

/// The account's id: the organisation's, if it has our form and no other key has it.
pub(super) fn id(key: &AgentHubKey, subject: &str, oddities: &mut Vec<Oddity>) -> AccountId {
    let own = key.org_id.as_deref().and_then(|text| text.parse::<AccountId>().ok());
    let derived = || derived_id("agenthub", &key.id);
    match own {
        Some(id) if !key.org_id_is_repeated => id,
        Some(id) => {
            let derived = derived();
            let detail = format!("org_id {id} is that of another key too; it was imported as {derived}");
            oddities.push(Oddity::new(subject, OddityKind::DuplicateId, detail));
            derived
        }
        None => derived(),
    }
}

pub(super) fn name(key: &AgentHubKey, subject: &str, oddities: &mut Vec<Oddity>) -> AgentName {
    let given = key.session_name.as_deref().unwrap_or_default().trim();
    // Who paid to sign up has no session.
    let needs_session = key.session_id.is_some() || key.payer.is_none();
    if key.session_name.is_none() && needs_session {
        let session = key.session_id.as_deref().unwrap_or("none");
        let detail = format!("signup session {session} does not exist; the name is made up");
        oddities.push(Oddity::new(subject, OddityKind::MissingSession, detail));
    }
    if let Ok(name) = given.parse() {
        return name;
    }
    let wanted = if given.is_empty() { format!("imported-{}", key.id) } else { given.to_owned() };
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    let text: String = wanted.chars().map(allowed).take(64).collect();
    if !given.is_empty() {
        let detail = format!("agent_name {given:?} is not allowed here; it was imported as {text}");
        oddities.push(Oddity::new(subject, OddityKind::InvalidName, detail));
    }
    text.parse().unwrap_or_else(|_| "imported".parse().expect("this is a name"))
}

pub(super) fn email(key: &AgentHubKey, subject: &str, oddities: &mut Vec<Oddity>) -> Option<Email> {
    let text = key.email.as_deref().map(str::trim).filter(|text| !text.is_empty())?;
    text.parse()
        .map_err(|_| {
            let detail = format!("{text:?} is not an email address; it was imported without one");
            oddities.push(Oddity::new(subject, OddityKind::InvalidEmail, detail));
        })
        .ok()
}

pub(super) fn limits(key: &AgentHubKey, subject: &str, oddities: &mut Vec<Oddity>) -> RateLimits {
    let usual = RateLimits::default();
    let mut limit = |column: &str, cell: &Cell, usual: u32| match cell {
        Cell::Null => usual,
        cell => cell.whole().and_then(|whole| u32::try_from(whole).ok()).unwrap_or_else(|| {
            let detail = format!("{column} is not a limit; {usual} is used");
            oddities.push(Oddity::new(subject, OddityKind::InvalidLimit, detail));
            usual
        }),
    };
    RateLimits {
        requests_per_minute: limit("rate_limit_rpm", &key.per_minute, usual.requests_per_minute),
        requests_per_day: limit("rate_limit_rpd", &key.per_day, usual.requests_per_day),
    }
}
