//! An account as the commands print it.

use std::io::Write;

use metering_admin::wire::AccountDocument;

use crate::failure::Failure;
use crate::output;
use crate::table::{table, write_pairs};

/// A rate limit for display.
pub(crate) fn cap(requests: u32) -> String {
    if requests == 0 { "no limit".to_owned() } else { requests.to_string() }
}

/// Writes an account, for people (after `headline`) or as JSON.
pub(crate) fn write(out: &mut dyn Write, json: bool, headline: &str, account: &AccountDocument) -> Result<(), Failure> {
    if json {
        return output::write_json(out, account);
    }
    if !headline.is_empty() {
        writeln!(out, "{headline}\n")?;
    }
    write_account(out, account)
}

fn write_account(out: &mut dyn Write, account: &AccountDocument) -> Result<(), Failure> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let email =
        or_none(account.email.as_ref().map(|email| match (&account.email_verified_at, account.email_free_credits) {
            (Some(at), _) => format!("{email} (verified at {at})"),
            (None, Some(credits)) => format!("{email} (not verified; {credits} free credits wait for it)"),
            (None, None) => email.clone(),
        }));
    let payer = or_none(account.payer_address.map(|payer| payer.to_checksummed()));
    let status = match (&account.erased_at, &account.revoked_at) {
        (Some(at), _) => format!("revoked, and its owner erased at {at}"),
        (None, Some(at)) => format!("revoked at {at}"),
        (None, None) => "active".to_owned(),
    };
    write_pairs(
        out,
        &[
            ("Account", &account.org_id),
            ("Agent name", &account.agent_name),
            ("Email", &email),
            ("Payer address", &payer),
            ("Status", &status),
            ("Created", &account.created_at),
            ("Balance", &account.credit_balance),
            ("Held", &account.credits_held),
            ("Purchased", &account.total_credits_purchased),
            ("Granted", &account.total_credits_granted),
            ("Used", &account.total_credits_used),
            ("Requests per minute", &cap(account.rate_limits.requests_per_minute)),
            ("Requests per day", &cap(account.rate_limits.requests_per_day)),
            ("Tokens per minute", &cap(account.tokens_per_minute)),
        ],
    )?;
    if account.notes.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    table!(out, &account.notes, |note| {
        time("NOTED") => note.at,
        text("BY") => note.by.as_deref().unwrap_or("-"),
        text("NOTE") => note.text,
    })
}
