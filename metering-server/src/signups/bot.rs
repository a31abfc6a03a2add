//! The bot challenge that signups must pass, and what browsers need to know about it.

mod altcha;
mod demand;
mod turnstile;

use std::net::IpAddr;
use std::sync::Arc;

use metering_core::Timestamp;
use metering_core::signups::BotCheck;

pub(crate) use altcha::ProofOfWork;
use turnstile::Turnstile;

use crate::config::{BotCheckKind, SignupConfig};

/// The configured challenge.
#[derive(Debug, Clone)]
pub(crate) enum BotChallenge {
    /// ALTCHA: a proof of work in the browser, without a third party.
    Altcha(Arc<ProofOfWork>),
    /// Cloudflare Turnstile, verified by Cloudflare.
    Turnstile(Arc<Turnstile>),
    /// No challenge, by explicit setting.
    Off,
}

impl BotChallenge {
    /// The configured challenge.
    ///
    /// # Errors
    /// When the HTTP client for Turnstile cannot be set up.
    pub(crate) fn new(config: &SignupConfig) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(match config.bot_check {
            BotCheckKind::Altcha => Self::Altcha(Arc::new(ProofOfWork::new(config))),
            BotCheckKind::Turnstile => Self::Turnstile(Arc::new(Turnstile::new(&config.turnstile)?)),
            BotCheckKind::Off => {
                tracing::warn!("signup.bot_check is off: only limits.* slow down automated signups");
                Self::Off
            }
        })
    }

    /// Counts an approved signup: later signups from its network need more work.
    pub(crate) fn approved(&self, client: IpAddr, now: Timestamp) {
        if let Self::Altcha(check) = self {
            check.approved(client, now);
        }
    }

    /// Forgets idle clients.
    pub(crate) fn forget_idle(&self, now: Timestamp) {
        if let Self::Altcha(check) = self {
            check.forget_idle(now);
        }
    }

    /// The check that verifies solutions, if a challenge is configured.
    pub(crate) fn check(&self) -> Option<Arc<dyn BotCheck>> {
        match self {
            Self::Altcha(check) => Some(Arc::clone(check) as _),
            Self::Turnstile(check) => Some(Arc::clone(check) as _),
            Self::Off => None,
        }
    }
}
