//! `accounts create`: a child account and its first key.

use std::fmt::Display;
use std::io::Write;

use clap::Args;
use metering_client::Response;
use metering_client::calls::child_accounts::CreateChildAccount;
use metering_core::access::{AgentName, RateLimits};
use metering_core::charging::IdempotencyKey;
use metering_core::wire::{CreateChildRequest, IssuedChildResponse};

use crate::client::access::keys::issued::attempts;
use crate::client::charging::call::generate_key;
use crate::client::session::documents::Document;
use crate::client::session::options::CallOptions;
use crate::failure::Failure;
use crate::output::notice;
use crate::table::write_pairs;

/// Create a child account, and print its first key. The key is shown only once.
#[derive(Debug, Args)]
#[command(after_help = "\
The child account has no credits yet: give it some. Its rate limits are those of your account, or lower.

Examples:
  metering accounts create customer-1
  metering accounts create customer-2 --per-minute 60 --per-day 10000")]
pub(super) struct CreateArgs {
    /// Its name: letters, digits, hyphens and underscores.
    #[arg(value_name = "NAME")]
    name: AgentName,
    /// Requests per calendar minute; 0 for no limit [default: as your account].
    #[arg(long, value_name = "N", requires = "per_day")]
    per_minute: Option<u32>,
    /// Requests per UTC day; 0 for no limit [default: as your account].
    #[arg(long, value_name = "N", requires = "per_minute")]
    per_day: Option<u32>,
    /// Get the account of a run whose response was lost; the error message has the value.
    #[arg(long, value_name = "KEY", value_parser = IdempotencyKey::parse)]
    idempotency_key: Option<IdempotencyKey>,
    #[command(flatten)]
    options: CallOptions,
}

impl CreateArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let limits = self.per_minute.zip(self.per_day);
        let rate_limits = limits.map(|(minute, day)| RateLimits::per_minute(minute).and_per_day(day));
        let request = CreateChildRequest { agent_name: Some(self.name.to_string()), rate_limits };
        let once = self.idempotency_key.unwrap_or_else(generate_key);
        let client = self.options.client()?.with_idempotency_key(once.clone());
        let response = attempts(&once, async || client.call::<CreateChildAccount>(&(), &request).await).await?;
        write(&response, self.options.json(), out)
    }
}

/// Writes a child account and its new key, which can never be printed again.
pub(super) fn write(response: &Response, json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let document: Document<IssuedChildResponse> = Document::of(response.clone())?;
    let IssuedChildResponse { api_key, data } = &document.content;
    let lost = |failure: Failure| {
        let id = &data.org_id;
        Failure::Failed(format!(
            "could not write the new key of account {id} ({failure}), so it is lost; get another with `metering accounts \
             rotate {id}`"
        ))
    };
    if json {
        return document.write_json(out).and_then(|()| Ok(out.flush()?)).map_err(lost);
    }
    let key = api_key.key().expose();
    let pairs: [(&str, &dyn Display); 3] = [("Account", &data.org_id), ("Name", &data.agent_name), ("Key", &key)];
    write_pairs(out, &pairs).and_then(|()| Ok(out.flush()?)).map_err(lost)?;
    notice("The key is shown only once; pass it on to whoever uses the account.");
    Ok(())
}
