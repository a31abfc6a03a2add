//! `account grant` and `account adjust`: manual ledger entries.

use std::io::Write;

use clap::Args;
use metering_admin::calls::accounts::{Adjust, Grant, OfAccount};
use metering_admin::wire::EntryRequest;
use metering_core::money::DecimalError;
use metering_core::{AccountId, Credits};

use super::document;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::Format;

/// Grant credits to an account.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering admin account grant org_0123456789abcdefghij --credits 25 --note \"Beta programme\"")]
pub(crate) struct GrantArgs {
    /// The account's id.
    #[arg(value_name = "ORG")]
    org: AccountId,
    /// How many credits: above zero, with up to eight decimal places.
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    credits: Credits,
    /// A note for the ledger; the account's owner can read it.
    #[arg(long, value_name = "TEXT", default_value = "Granted by the operator", value_parser = note)]
    note: String,
    #[command(flatten)]
    format: Format,
}

/// Correct an account's balance, up or down.
#[derive(Debug, Args)]
#[command(after_help = "\
The balance may go below zero; requests are then rejected until credits are added.

Example:
  metering admin account adjust org_0123456789abcdefghij --credits=-2.5 --note \"Monday's grant was made twice\"")]
pub(crate) struct AdjustArgs {
    /// The account's id.
    #[arg(value_name = "ORG")]
    org: AccountId,
    /// The credits to add, or to deduct if negative; up to eight decimal places.
    #[arg(long, value_name = "N", value_parser = signed, allow_negative_numbers = true)]
    credits: Credits,
    /// The reason, for the ledger; the account's owner can read it.
    #[arg(long, value_name = "TEXT", value_parser = note)]
    note: String,
    #[command(flatten)]
    format: Format,
}

fn positive(text: &str) -> Result<Credits, String> {
    let credits: Credits = text.parse().map_err(|error: DecimalError| error.to_string())?;
    if credits.is_positive() {
        Ok(credits)
    } else {
        Err("must be above zero; to deduct credits, use `account adjust`".to_owned())
    }
}

fn signed(text: &str) -> Result<Credits, String> {
    let credits: Credits = text.parse().map_err(|error: DecimalError| error.to_string())?;
    if credits == Credits::ZERO { Err("must not be zero".to_owned()) } else { Ok(credits) }
}

/// Parses the note of a ledger entry.
fn note(text: &str) -> Result<String, String> {
    const MAX_CHARS: usize = 500;
    let text = text.trim();
    if text.is_empty() || text.chars().count() > MAX_CHARS || text.chars().any(char::is_control) {
        return Err(format!("must be one line of 1 to {MAX_CHARS} characters"));
    }
    Ok(text.to_owned())
}

impl GrantArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let entry = EntryRequest { credits: self.credits, note: Some(self.note), reason: String::new() };
        let account = session.administrator().await?.call::<Grant>(OfAccount { id: self.org }, entry).await?;
        document::write(out, self.format.json, &posted(self.credits), &account)
    }
}

impl AdjustArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let entry = EntryRequest { credits: self.credits, note: Some(self.note), reason: String::new() };
        let account = session.administrator().await?.call::<Adjust>(OfAccount { id: self.org }, entry).await?;
        document::write(out, self.format.json, &posted(self.credits), &account)
    }
}

fn posted(credits: Credits) -> String {
    format!("Posted {credits} credits to the ledger.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_one_non_empty_line() {
        let longest = "ä".repeat(500);
        let too_long = "a".repeat(501);
        let table = [
            ("a", true),
            (" padded ", true),
            (longest.as_str(), true),
            (too_long.as_str(), false),
            ("", false),
            ("  ", false),
            ("two\nlines", false),
            ("\u{1b}[31m", false),
        ];
        for (text, valid) in table {
            assert_eq!(note(text).is_ok(), valid, "{text:?}");
        }
        assert_eq!(note(" padded ").unwrap(), "padded");
    }
}
