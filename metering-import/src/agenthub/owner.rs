//! The owner and limits of a key. Values that are not allowed here are replaced and reported.

use metering_core::access::{AccountId, AgentName, Email, RateLimits};
use metering_core::clock::Timestamp;
use metering_core::imports::ImportedAccount;

use super::{AgentHubKey, Cell};
use crate::finding::{ImportFinding, ImportFindingKind};
use crate::time::parse_time;

/// A time, or `otherwise`.
pub(super) fn time(
    text: Option<&str>,
    otherwise: Timestamp,
    subject: &str,
    oddities: &mut Vec<ImportFinding>,
) -> Timestamp {
    let text = text.unwrap_or_default();
    parse_time(text).unwrap_or_else(|| {
        let detail = format!("{text:?} is not a time; {otherwise} is used");
        oddities.push(ImportFinding::new(subject, ImportFindingKind::InvalidTime, detail));
        otherwise
    })
}

/// The account's id: the organisation's, if it has our format and no other key uses it.
pub(super) fn id(key: &AgentHubKey, subject: &str, oddities: &mut Vec<ImportFinding>) -> AccountId {
    let own = key.org_id.as_deref().and_then(|text| text.parse::<AccountId>().ok());
    let derived = || ImportedAccount::derived_id("agenthub", &key.id);
    match own {
        Some(id) if !key.org_id_is_repeated => id,
        Some(id) => {
            let derived = derived();
            let detail = format!("org_id {id} is that of another key too; it was imported as {derived}");
            oddities.push(ImportFinding::new(subject, ImportFindingKind::DuplicateId, detail));
            derived
        }
        None => {
            let (derived, given) = (derived(), key.org_id.as_deref().unwrap_or_default());
            if !given.is_empty() {
                let detail = format!("org_id {given:?} is not an id here; it was imported as {derived}");
                oddities.push(ImportFinding::new(subject, ImportFindingKind::InvalidId, detail));
            }
            derived
        }
    }
}

pub(super) fn name(key: &AgentHubKey, subject: &str, oddities: &mut Vec<ImportFinding>) -> AgentName {
    // Customers who paid to sign up have a quote instead of a session.
    let named = key.quote_name.as_deref().or(key.session_name.as_deref().filter(|_| !key.shares_session()));
    let given = named.unwrap_or_default().trim();
    let needs_session = key.session_id.is_some() || key.payer.is_none();
    if named.is_none() && key.session_name.is_none() && needs_session {
        let session = key.session_id.as_deref().unwrap_or("none");
        let detail = format!("signup session {session} does not exist; the name is made up");
        oddities.push(ImportFinding::new(subject, ImportFindingKind::MissingSession, detail));
    }
    if let Ok(name) = given.parse() {
        return name;
    }
    let wanted = if given.is_empty() { format!("imported-{}", key.id) } else { given.to_owned() };
    let name = name_of(&wanted).unwrap_or_else(|| "imported".parse().expect("this is a name"));
    if !given.is_empty() {
        let detail = format!("agent_name {given:?} is not allowed here; it was imported as {name}");
        oddities.push(ImportFinding::new(subject, ImportFindingKind::InvalidName, detail));
    }
    name
}

/// A name with forbidden characters replaced; `None` for an empty one.
pub(super) fn name_of(wanted: &str) -> Option<AgentName> {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    wanted.trim().chars().map(allowed).take(64).collect::<String>().parse().ok()
}

/// An email address, unless it is invalid or a placeholder.
pub(super) fn email_of(text: &str) -> Option<Email> {
    text.trim().parse().ok().filter(|_| !is_placeholder(text.trim()))
}

pub(super) fn email(key: &AgentHubKey, subject: &str, oddities: &mut Vec<ImportFinding>) -> Option<Email> {
    let text = key.email.as_deref().map(str::trim).filter(|text| !text.is_empty() && !is_placeholder(text))?;
    text.parse()
        .map_err(|_| {
            let detail = format!("{text:?} is not an email address; it was imported without one");
            oddities.push(ImportFinding::new(subject, ImportFindingKind::InvalidEmail, detail));
        })
        .ok()
}

/// Whether it is the service's placeholder for accounts without an address: no mail server can have these names (RFC
/// 6762; ICANN reserves `internal`).
fn is_placeholder(email: &str) -> bool {
    let domain = email.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
    domain.ends_with(".local") || domain.ends_with(".internal")
}

pub(super) fn limits(key: &AgentHubKey, subject: &str, oddities: &mut Vec<ImportFinding>) -> RateLimits {
    let usual = RateLimits::default();
    let mut limit = |column: &str, cell: &Cell, usual: u32| match cell {
        Cell::Null => usual,
        cell => cell.whole().and_then(|whole| u32::try_from(whole).ok()).unwrap_or_else(|| {
            let detail = format!("{column} is not a limit; {usual} is used");
            oddities.push(ImportFinding::new(subject, ImportFindingKind::InvalidLimit, detail));
            usual
        }),
    };
    let per_minute = limit("rate_limit_rpm", &key.per_minute, usual.requests_per_minute);
    RateLimits::per_minute(per_minute).and_per_day(limit("rate_limit_rpd", &key.per_day, usual.requests_per_day))
}
