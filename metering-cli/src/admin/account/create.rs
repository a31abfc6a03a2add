//! `account create`: creates an account with its key and first credits, in one atomic change.

use std::io::Write;

use clap::Args;
use metering_admin::calls::accounts::CreateAccount;
use metering_admin::wire::CreateAccountRequest;
use metering_core::Credits;
use metering_core::access::{AgentName, Email};
use metering_core::money::DecimalError;

use super::issued::IssuedKey;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::Format;

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
