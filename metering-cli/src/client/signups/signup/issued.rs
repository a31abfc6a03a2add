//! The output for a new account.

use std::io::Write;
use std::path::PathBuf;

use metering_core::ApiKey;
use serde::Serialize;

use crate::client::money::amount::Amount;
use crate::client::session::documents::Caps;
use crate::client::signups::signup::wait::Verification;
use crate::failure::Failure;
use crate::output::{Format, notice, write_json};
use crate::table::write_pairs;

/// An account whose key is in the profile.
pub(super) struct Issued {
    pub(super) org_id: String,
    pub(super) credit_balance: Amount,
    pub(super) rate_limits: Caps,
    pub(super) email_verification: Option<Verification>,
    pub(super) profile: String,
    pub(super) stored_in: PathBuf,
    pub(super) key: ApiKey,
}

/// The JSON output.
#[derive(Serialize)]
struct Document<'a> {
    org_id: &'a str,
    credit_balance: &'a Amount,
    rate_limits: Caps,
    profile: &'a str,
    stored_in: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    email_verification: Option<&'a Verification>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key: Option<&'a str>,
}

impl Issued {
    pub(super) fn write(&self, show_key: bool, format: &Format, out: &mut dyn Write) -> Result<(), Failure> {
        let key = show_key.then(|| self.key.expose());
        let stored_in = self.stored_in.display().to_string();
        if format.json {
            let Self { org_id, credit_balance, rate_limits, profile, .. } = self;
            let rate_limits = *rate_limits;
            let email_verification = self.email_verification.as_ref();
            let document =
                Document { org_id, credit_balance, rate_limits, profile, stored_in, email_verification, api_key: key };
            return write_json(out, &document);
        }
        write_pairs(
            out,
            &[
                ("Account", &self.org_id),
                ("Balance", &self.credit_balance),
                ("Requests", &self.rate_limits),
                ("Key stored in", &stored_in),
            ],
        )?;
        if let Some(key) = key {
            writeln!(out, "API key        {key}")?;
        }
        if self.email_verification.as_ref().is_some_and(|verification| verification.status == "pending") {
            let free = self.email_verification.as_ref().map(|verification| &verification.free_credits);
            let free = free.filter(|free| !free.is_used_up());
            let gain = free.map_or_else(String::new, |free| format!("; your {free} free credits are added then"));
            out.flush()?;
            notice(&format!("Open the link in the mail to verify your email address{gain}."));
        }
        out.flush()?;
        notice("Next, see what you can call, and call it:\n  metering routes\n  metering call ROUTE");
        Ok(())
    }
}
