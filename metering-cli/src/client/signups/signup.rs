//! `metering signup`: creates an account without payment, approved by a person in the browser (similar to RFC 8628).
//!
//! The key is returned only once, in response to the first status poll after the approval. So the session is saved
//! before the first poll, only one process polls at a time, and the key is stored in the profile before anything is
//! printed.

mod browser;
mod issued;
mod pending;
mod wait;

use std::io::Write;
use std::time::Duration;

use clap::Args;
use metering_core::{ApiKey, Clock, SystemClock};
use serde::Deserialize;
use serde_json::json;
use zeroize::Zeroizing;

use crate::client::access::private_file::FileLock;
use crate::client::session::interruption::Interruption;
use crate::client::session::{ProfileArgs, Session};
use crate::client::signups::signup::issued::Issued;
use crate::client::signups::signup::pending::Pending;
use crate::client::signups::signup::wait::SignupOutcome;
use crate::failure::Failure;
use crate::output::{Format, notice};
use crate::table::printable;

/// The maximum length of a session, whatever the service sends.
const MAX_SESSION: Duration = Duration::from_secs(24 * 60 * 60);

/// Get an account with free credits, approved in the browser.
///
/// Shows a URL and a code, waits for the approval, and stores the account's key in the profile. If it is interrupted,
/// run `metering signup` again to continue with the same code.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering signup --email me@example.com --agent-name my-agent
  metering signup --profile work --url https://api.example.com --email me@example.com --agent-name ci --open
  metering signup")]
pub(crate) struct SignupArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// Your email address; not needed to continue a pending signup.
    #[arg(long, value_name = "EMAIL")]
    email: Option<String>,
    /// The account's name: 1 to 64 letters, digits, hyphens or underscores.
    #[arg(long, value_name = "NAME")]
    agent_name: Option<String>,
    /// Also open the page in the browser.
    #[arg(long)]
    open: bool,
    /// Replace the profile's current key. The old key stays valid, but is no longer stored here.
    #[arg(long)]
    replace_key: bool,
    /// Give up a pending signup and start a new one.
    #[arg(long)]
    restart: bool,
    /// Also print the key.
    #[arg(long)]
    show_key: bool,
    #[command(flatten)]
    format: Format,
}

/// The response to `POST /signup/initiate`.
#[derive(Deserialize)]
struct InitiateResponse {
    session_token: Zeroizing<String>,
    verification_url: String,
    verification_url_complete: Option<String>,
    user_code: String,
    expires_in: u64,
    interval: u64,
}

impl SignupArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let before = self.profile.open()?;
        let _lock = FileLock::acquire(before.profile.file("signup.lock"), "signing up")?;
        // Read again: another run may have changed the profile before this one got the lock.
        let mut session = self.profile.open()?;
        self.check_no_key(&session)?;
        let resumed = self.resume(&session)?;
        let was_resumed = resumed.is_some();
        let mut pending = match resumed {
            Some(pending) => pending,
            None => {
                let pending = self.initiate(&session, self.email.as_deref(), self.agent_name.as_deref()).await?;
                session.remember_service()?;
                pending
            }
        };
        let mut waited = self.wait(&session, &pending).await?;
        if was_resumed && matches!(waited, SignupOutcome::Expired) {
            notice("The pending signup has expired; starting a new one.");
            pending = self.initiate(&session, Some(&pending.email), Some(&pending.agent_name)).await?;
            waited = self.wait(&session, &pending).await?;
        }
        match waited {
            SignupOutcome::Approved(approved) => {
                let issued = self.store(&mut session, approved, out)?;
                issued.write(self.show_key, &self.format, out)
            }
            SignupOutcome::Expired => {
                Pending::remove(&session.profile)?;
                Err(Failure::TryLater(format!(
                    "the code {} was not approved in time; run `metering signup` again for a new one",
                    pending.user_code
                )))
            }
        }
    }

    fn check_no_key(&self, session: &Session) -> Result<(), Failure> {
        let Some(key) = session.profile.settings.api_key.as_ref().filter(|_| !self.replace_key) else { return Ok(()) };
        let name = session.profile.name();
        Err(Failure::Conflict(format!(
            "profile {name} already has a key ({}); sign up with another --profile, or replace that key with \
             --replace-key",
            key.hint()
        )))
    }

    /// The pending signup, if there is one.
    fn resume(&self, session: &Session) -> Result<Option<Pending>, Failure> {
        let Some(pending) = Pending::load(&session.profile)? else { return Ok(None) };
        if self.restart {
            Pending::remove(&session.profile)?;
            return Ok(None);
        }
        let other = |given: &Option<String>, written: &str| {
            given.as_ref().is_some_and(|given| !given.trim().eq_ignore_ascii_case(written))
        };
        if pending.url != session.url().to_string()
            || other(&self.email, &pending.email)
            || other(&self.agent_name, &pending.agent_name)
        {
            return Err(Failure::Conflict(format!(
                "this profile has a pending signup of {} as {} at {}; continue it, or give it up \
                 with --restart",
                pending.email, pending.agent_name, pending.url
            )));
        }
        // Save again, so that a full or read-only disk is noticed before the service returns the key.
        pending.save(&session.profile)?;
        Ok(Some(pending))
    }

    async fn initiate(
        &self,
        session: &Session,
        email: Option<&str>,
        agent_name: Option<&str>,
    ) -> Result<Pending, Failure> {
        let (Some(email), Some(agent_name)) = (email, agent_name) else {
            let problem = "a new signup needs --email EMAIL and --agent-name NAME";
            return Err(Failure::Usage(problem.to_owned()));
        };
        let body = json!({"email": email, "agent_name": agent_name});
        let response: InitiateResponse = session.anonymous().post("/signup/initiate", &body).await?.json()?;
        let lifetime = Duration::from_secs(response.expires_in).min(MAX_SESSION);
        let pending = Pending {
            url: session.url().to_string(),
            email: email.to_owned(),
            agent_name: agent_name.to_owned(),
            session_token: response.session_token,
            verification_url: response.verification_url,
            verification_url_complete: response.verification_url_complete,
            user_code: response.user_code,
            interval_seconds: response.interval,
            expires_at_seconds: SystemClock.now().saturating_add(lifetime).unix_seconds(),
        };
        pending.save(&session.profile)?;
        Ok(pending)
    }

    async fn wait(&self, session: &Session, pending: &Pending) -> Result<SignupOutcome, Failure> {
        // Watch before the message says that Ctrl-C stops.
        let interruption = Interruption::watch()?;
        let url = pending.verification_url_complete.as_ref().unwrap_or(&pending.verification_url);
        notice(&format!(
            "To approve the account, open\n  {}\nand enter the code\n  {}\nor open\n  {}\nWaiting. Ctrl-C stops; \
             `metering signup` continues.",
            printable(&pending.verification_url),
            printable(&pending.user_code),
            printable(url)
        ));
        if self.open {
            browser::open(url);
        }
        wait::wait(&session.anonymous(), &session.profile, pending, interruption).await
    }

    /// Stores the key in the profile before anything else can go wrong.
    fn store(&self, session: &mut Session, approved: wait::Approved, out: &mut dyn Write) -> Result<Issued, Failure> {
        let earlier = session.profile.settings.api_key.clone();
        let key = match keep(session, &approved) {
            Ok(key) => key,
            Err(why) => {
                // The user asked to see the key anyway, and printing it is better than losing it.
                if self.show_key {
                    writeln!(out, "{}", printable(&approved.api_key))?;
                    out.flush()?;
                }
                return Err(Failure::Failed(format!(
                    "the account {} was created, but its key, which is returned only once, could not be stored: {why}; \
                    unless it was printed, ask the operator of the service for a new one",
                    approved.org_id
                )));
            }
        };
        Pending::remove(&session.profile)?;
        if let Some(earlier) = earlier {
            notice(&format!("The old key {} is no longer in the profile, but it is still valid.", earlier.hint()));
        }
        Ok(Issued {
            org_id: approved.org_id,
            credit_balance: approved.credit_balance,
            rate_limits: approved.rate_limits,
            email_verification: approved.email_verification,
            profile: session.profile.name().to_string(),
            stored_in: session.profile.path(),
            key,
        })
    }
}

fn keep(session: &mut Session, approved: &wait::Approved) -> Result<ApiKey, String> {
    let key = ApiKey::parse(&approved.api_key).map_err(|error| error.to_string())?;
    session.keep(key.clone(), Some(approved.org_id.clone())).map_err(|failure| failure.to_string())?;
    Ok(key)
}
