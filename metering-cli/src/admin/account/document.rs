//! An account as the commands print it.

use std::io::Write;

use metering_core::access::{AgentName, Email, EmailStatus};
use metering_core::chains::Address;
use metering_core::wire::EmailVerification;
use metering_core::{Account, AccountId, Credits, RateLimits, Timestamp};
use serde::Serialize;

use crate::failure::Failure;
use crate::output;
use crate::table::write_pairs;

/// An account in JSON, with the field names of `GET /credits/balance`.
#[derive(Debug, Serialize)]
pub(crate) struct AccountDocument<'a> {
    org_id: &'a AccountId,
    agent_name: &'a AgentName,
    email: Option<&'a Email>,
    email_status: Option<&'static str>,
    payer_address: Option<Address>,
    status: &'static str,
    credit_balance: Credits,
    total_credits_purchased: Credits,
    total_credits_granted: Credits,
    total_credits_used: Credits,
    rate_limits: RateLimits,
    created_at: Timestamp,
    revoked_at: Option<Timestamp>,
}

impl<'a> From<&'a Account> for AccountDocument<'a> {
    fn from(account: &'a Account) -> Self {
        Self {
            org_id: &account.id,
            agent_name: &account.agent_name,
            email: account.email.as_ref(),
            email_status: email_status(account),
            payer_address: account.payer.map(|payer| payer.address),
            status: status(account),
            credit_balance: account.totals.balance,
            total_credits_purchased: account.totals.purchased,
            total_credits_granted: account.totals.granted,
            total_credits_used: account.totals.used,
            rate_limits: account.limits,
            created_at: account.created_at,
            revoked_at: account.revoked_at,
        }
    }
}

/// `unchecked`, `pending` or `verified`; `None` without an address.
pub(crate) fn email_status(account: &Account) -> Option<&'static str> {
    EmailVerification::of(account).map(|verification| verification.status)
}

/// `active` or `revoked`.
pub(crate) fn status(account: &Account) -> &'static str {
    if account.revoked_at.is_some() { "revoked" } else { "active" }
}

/// A rate limit for display.
pub(crate) fn cap(requests: u32) -> String {
    if requests == 0 { "no limit".to_owned() } else { requests.to_string() }
}

/// Writes an account, for people (after `headline`) or as JSON.
pub(crate) fn write(out: &mut dyn Write, json: bool, headline: &str, account: &Account) -> Result<(), Failure> {
    if json {
        return output::json_line(out, &AccountDocument::from(account));
    }
    if !headline.is_empty() {
        writeln!(out, "{headline}\n")?;
    }
    write_account(out, account)
}

fn write_account(out: &mut dyn Write, account: &Account) -> Result<(), Failure> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let email = or_none(account.email.as_ref().map(|email| match account.email_status {
        EmailStatus::Unchecked => email.to_string(),
        EmailStatus::Pending { free_credits } => {
            format!("{email} (not verified; {free_credits} free credits wait for it)")
        }
        EmailStatus::Verified { at } => format!("{email} (verified at {at})"),
    }));
    let payer = or_none(account.payer.map(|payer| payer.address.to_checksummed()));
    let status = match account.revoked_at {
        Some(at) => format!("revoked at {at}"),
        None => "active".to_owned(),
    };
    write_pairs(
        out,
        &[
            ("Account", &account.id),
            ("Agent name", &account.agent_name),
            ("Email", &email),
            ("Payer address", &payer),
            ("Status", &status),
            ("Created", &account.created_at),
            ("Balance", &account.totals.balance),
            ("Purchased", &account.totals.purchased),
            ("Granted", &account.totals.granted),
            ("Used", &account.totals.used),
            ("Requests per minute", &cap(account.limits.requests_per_minute)),
            ("Requests per day", &cap(account.limits.requests_per_day)),
        ],
    )
}
