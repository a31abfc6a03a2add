//! `metering recover`: replaces a lost key with a link that was sent to the account's verified email address.

use std::io::Write;

use clap::Args;
use http::Uri;
use metering_client::{ClientError, ServiceUrl};
use metering_core::access::Email;
use metering_core::charging::IdempotencyKey;
use metering_core::signups::LinkToken;
use serde::Serialize;
use serde_json::json;

use crate::client::access::new_key::Replacement;
use crate::client::charging::call::generate_key;
use crate::client::session::{ProfileArgs, Session};
use crate::failure::Failure;
use crate::output::{Format, notice};

/// Replace a lost key by email: get a link, then exchange it for a new key.
///
/// The new key is stored in the profile; the old one stops working immediately. The account must have verified its
/// email address. With the wallet that paid, use `metering rotate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering recover --email me@example.com
  metering recover --link \"https://api.example.com/metering/recover#eml_0123\"")]
pub(crate) struct RecoverArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// Send a link to this address, if an account has verified it.
    #[arg(long, value_name = "EMAIL", conflicts_with = "link", required_unless_present = "link")]
    email: Option<Email>,
    /// The link in the mail, in quotes, or its part after `#`. Works once, for ten minutes.
    ///
    /// The whole link must lead to the profile's service.
    #[arg(long, value_name = "LINK")]
    link: Option<String>,
    /// Get the key of a recovery whose response was lost; the error message has the value.
    #[arg(long, value_name = "KEY", requires = "link", value_parser = IdempotencyKey::parse)]
    idempotency_key: Option<IdempotencyKey>,
    /// Replace the profile's key even if it works.
    #[arg(long)]
    replace_key: bool,
    #[command(flatten)]
    format: Format,
}

impl RecoverArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut session = self.profile.open()?;
        let Some(link) = &self.link else { return self.ask(&session).await };
        let token = token_of(link, session.url())?;
        self.check_profile_has_no_working_key(&session).await?;
        let recovery = self.idempotency_key.clone().unwrap_or_else(generate_key);
        let again = format!("metering recover --link LINK --idempotency-key {}", recovery.as_str());
        notice(&format!("If this is interrupted, get the new key with the same link and `{again}`."));
        let replacement = Replacement {
            path: "/api-key/recover/email/confirm",
            body: LinkRequest { token: token.expose() },
            final_status: 410,
            is_begun: self.idempotency_key.is_some(),
            advice: format!("run `{again}` with the same link"),
        };
        let issued = replacement.get(&session.anonymous().with_idempotency_key(recovery)).await?;
        issued.keep(&mut session, out)?;
        let done = "The account has a new key; the old one no longer works.";
        issued.account(&session, "recovered").write(out, self.format.json, done)?;
        out.flush()?;
        issued.note_remaining_keys();
        Ok(())
    }

    async fn ask(&self, session: &Session) -> Result<(), Failure> {
        let email = self.email.as_ref().ok_or_else(|| Failure::Usage("name the address with --email".to_owned()))?;
        session.anonymous().post("/api-key/recover/email", &json!({"email": email})).await?;
        notice(&format!(
            "If an account has verified {email}, a link is on its way there. Within ten minutes, run\n  \
             metering recover --link \"LINK\""
        ));
        Ok(())
    }

    /// Refuses to overwrite a working key: it may belong to another account than the link.
    async fn check_profile_has_no_working_key(&self, session: &Session) -> Result<(), Failure> {
        let settings = &session.profile.settings;
        let Some(key) = settings.api_key.clone().filter(|_| !self.replace_key) else { return Ok(()) };
        let is_other_url = settings.url.as_ref().is_some_and(|url| url != session.url());
        let works = is_other_url
            || match session.anonymous().with_key(key).get("/credits/balance").await {
                Ok(_) => true,
                Err(ClientError::Refused(refusal)) if refusal.status == 401 => false,
                Err(error) => return Err(error.into()),
            };
        if !works {
            return Ok(());
        }
        Err(Failure::Conflict(format!(
            "profile {} has a key that works, which would be lost: choose another profile with --profile, or add \
             --replace-key",
            session.profile.name()
        )))
    }
}

#[derive(Serialize)]
struct LinkRequest<'a> {
    token: &'a str,
}

/// The token of a link, which must be to `service`: another service could use it up. The errors do not repeat the text,
/// which is a secret.
fn token_of(link: &str, service: &ServiceUrl) -> Result<LinkToken, Failure> {
    let (page, text) = link.trim().rsplit_once('#').unwrap_or(("", link.trim()));
    let token = LinkToken::parse(text).map_err(|_| {
        Failure::Usage("--link must be the whole link in the mail, in quotes; it ends with # and eml_...".to_owned())
    })?;
    let host = |url: &str| url.parse::<Uri>().ok().and_then(|url| url.authority().cloned());
    if page.is_empty() || host(page).is_some_and(|linked| Some(linked) == host(&service.to_string())) {
        return Ok(token);
    }
    Err(Failure::Usage(format!(
        "the link does not lead to {service}: choose the profile of its service with --profile, or, if it belongs to \
         this service, give only the part after #"
    )))
}
