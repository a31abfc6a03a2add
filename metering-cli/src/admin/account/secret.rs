//! Commands that print a new key: `account create` and `account rotate-key`. It can be printed only once, because the
//! store keeps only its hash.

use std::io::Write;

use clap::Args;
use metering_admin::calls::accounts::{CreateAccount, OfAccount, RotateAccountKey};
use metering_admin::wire::{AccountDocument, CreateAccountRequest};
use metering_core::access::{AgentName, Email};
use metering_core::money::DecimalError;
use metering_core::{AccountId, Credits, wire};
use serde::Serialize;

use crate::admin::session::Session;
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::write_pairs;

/// Create an account and print its key. The key is shown only once.
#[derive(Debug, Args)]
#[command(after_help = "\
Also creates the store if there is none yet.

Examples:
  metering admin account create --agent-name my-agent --credits 10
  metering admin account create --agent-name batch --email ops@example.com --rpm 0 --rpd 0 --json")]
pub(crate) struct CreateArgs {
    /// The account's name: 1 to 64 letters, digits, hyphens or underscores.
    #[arg(long, value_name = "NAME")]
    agent_name: AgentName,
    /// The owner's email address; no other active account may have it.
    #[arg(long, value_name = "EMAIL")]
    email: Option<Email>,
    /// The initial credits, with up to eight decimal places.
    #[arg(long, value_name = "N", default_value = "0", value_parser = initial_credits, allow_negative_numbers = true)]
    credits: Credits,
    /// Requests per calendar minute; 0 for no limit [default: 240].
    #[arg(long, value_name = "N")]
    rpm: Option<u32>,
    /// Requests per UTC day; 0 for no limit [default: 1500000].
    #[arg(long, value_name = "N")]
    rpd: Option<u32>,
    /// Tokens per calendar minute, on routes that count them; 0 for no limit [default: 0].
    #[arg(long, value_name = "N")]
    tpm: Option<u32>,
    #[command(flatten)]
    format: Format,
}

fn initial_credits(text: &str) -> Result<Credits, String> {
    let credits: Credits = text.parse().map_err(|error: DecimalError| error.to_string())?;
    if credits.is_negative() { Err("must not be negative".to_owned()) } else { Ok(credits) }
}

impl CreateArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let request = CreateAccountRequest {
            agent_name: self.agent_name.to_string(),
            email: self.email.map(|email| email.to_string()),
            credits: Some(self.credits),
            requests_per_minute: self.rpm,
            requests_per_day: self.rpd,
            tokens_per_minute: self.tpm,
            reason: String::new(),
        };
        let created = session.administrator_or_new().await?.call::<CreateAccount>((), request).await?;
        IssuedKey(created.api_key).print(out, self.format.json, &created.account)
    }
}

/// Replace an account's first key and print the new one. The key is shown only once.
#[derive(Debug, Args)]
#[command(after_help = "\
The old key stops working immediately, in running servers too, and so does every other key that can manage keys.
`metering admin key rotate` replaces one key and leaves the others alone.

Example:
  metering admin account rotate-key org_0123456789abcdefghij")]
pub(crate) struct RotateKeyArgs {
    /// The account's id.
    #[arg(value_name = "ORG")]
    org: AccountId,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    format: Format,
}

impl RotateKeyArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        let question = format!("Replace the first key of account {}? The old one stops working immediately.", self.org);
        self.confirmation.ask(&question).await?;
        let created = administrator.act::<RotateAccountKey>(OfAccount { id: self.org }).await?;
        IssuedKey(created.api_key).print(out, self.format.json, &created.account)
    }
}

/// A key that has not been shown yet.
#[derive(Debug)]
pub(crate) struct IssuedKey(pub(crate) wire::IssuedKey);

#[derive(Debug, Serialize)]
struct Document<'a> {
    org_id: &'a str,
    api_key: &'a str,
    credit_balance: Credits,
}

impl IssuedKey {
    /// Prints the key. It can never be printed again, so even a closed pipe is a failure here, and the error says what
    /// to do.
    pub(crate) fn print(self, out: &mut dyn Write, json: bool, account: &AccountDocument) -> Result<(), Failure> {
        let id = &account.org_id;
        self.write(out, json, account).and_then(|()| Ok(out.flush()?)).map_err(|failure| {
            Failure::Failed(format!(
                "could not print the new key of account {id} ({failure}), so it is lost; create another with \
                 `metering admin account rotate-key {id}`"
            ))
        })
    }

    fn write(&self, out: &mut dyn Write, json: bool, account: &AccountDocument) -> Result<(), Failure> {
        let (org_id, api_key, credit_balance) =
            (account.org_id.as_str(), self.0.key().expose(), account.credit_balance);
        if json {
            return write_json(out, &Document { org_id, api_key, credit_balance });
        }
        write_pairs(out, &[("Account", &org_id), ("API key", &api_key), ("Balance", &credit_balance)])?;
        writeln!(out, "\nThe key is shown only once; save it now. If it is lost, replace it with")?;
        Ok(writeln!(out, "  metering admin account rotate-key {org_id}")?)
    }
}
