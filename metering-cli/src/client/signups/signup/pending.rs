//! A pending signup, saved in the profile's directory: its token is needed to get the key.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use metering_core::{Clock, SystemClock};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::client::access::private_file;
use crate::client::access::profile::Profile;
use crate::failure::Failure;

const FILE: &str = "signup.json";
/// The bounds of the poll interval, whatever the service sends.
const INTERVAL_SECONDS: std::ops::RangeInclusive<u64> = 1..=60;

/// A session of `POST /signup/initiate`.
#[derive(Serialize, Deserialize)]
pub(super) struct Pending {
    /// The service's URL.
    pub(super) url: String,
    pub(super) email: String,
    pub(super) agent_name: String,
    pub(super) session_token: Zeroizing<String>,
    pub(super) verification_url: String,
    pub(super) verification_url_complete: Option<String>,
    pub(super) user_code: String,
    pub(super) interval_seconds: u64,
    /// In Unix time.
    pub(super) expires_at_seconds: i64,
}

/// Without the token.
impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("url", &self.url).field("user_code", &self.user_code).finish_non_exhaustive()
    }
}

impl Pending {
    /// The saved signup, if there is one.
    pub(super) fn load(profile: &Profile) -> Result<Option<Self>, Failure> {
        let path = Self::path(profile);
        let Some(text) = private_file::read(&path)? else { return Ok(None) };
        // Errors do not show the position of the fault, because the text contains a token.
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|_| Failure::Failed(format!("{} is damaged; remove it to start another signup", path.display())))
    }

    pub(super) fn save(&self, profile: &Profile) -> Result<(), Failure> {
        let text = serde_json::to_vec(self).map(Zeroizing::new);
        let text = text.map_err(|_| Failure::Failed("cannot serialize the signup as JSON".to_owned()))?;
        private_file::write(&Self::path(profile), &text)
    }

    pub(super) fn remove(profile: &Profile) -> Result<(), Failure> {
        private_file::remove(&Self::path(profile))
    }

    /// How long it can still be approved.
    pub(super) fn time_left(&self) -> Duration {
        let seconds = self.expires_at_seconds.saturating_sub(SystemClock.now().unix_seconds());
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }

    /// How long to wait between two polls.
    pub(super) fn interval(&self) -> Duration {
        Duration::from_secs(self.interval_seconds.clamp(*INTERVAL_SECONDS.start(), *INTERVAL_SECONDS.end()))
    }

    fn path(profile: &Profile) -> PathBuf {
        profile.file(FILE)
    }
}
