//! Which bot challenge signups must pass, and what browsers need to know of it.

mod altcha;
mod demand;
mod turnstile;

use std::net::IpAddr;
use std::sync::Arc;

use metering_core::{BotCheck, Timestamp};

pub(crate) use altcha::ProofOfWork;
use turnstile::Turnstile;

use crate::config::{BotCheckKind, SignupConfig};

/// The challenge that is configured.
#[derive(Debug, Clone)]
pub(crate) enum BotChallenge {
    /// ALTCHA: the browser works for it, and nobody else is asked.
    Altcha(Arc<ProofOfWork>),
    /// Cloudflare Turnstile: Cloudflare is asked.
    Turnstile(Arc<Turnstile>),
    /// None, by explicit setting.
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
                tracing::warn!("signup.bot_check is off: programs can sign up as fast as limits.* let them");
                Self::Off
            }
        })
    }

    /// Counts a signup that was approved: the next ones of its network take more work.
    pub(crate) fn approved(&self, client: IpAddr, now: Timestamp) {
        if let Self::Altcha(check) = self {
            check.approved(client, now);
        }
    }

    /// Forgets clients that went away.
    pub(crate) fn forget_idle(&self, now: Timestamp) {
        if let Self::Altcha(check) = self {
            check.forget_idle(now);
        }
    }

    /// What judges answers.
    pub(crate) fn check(&self) -> Option<Arc<dyn BotCheck>> {
        match self {
            Self::Altcha(check) => Some(Arc::clone(check) as _),
            Self::Turnstile(check) => Some(Arc::clone(check) as _),
            Self::Off => None,
        }
    }
}
