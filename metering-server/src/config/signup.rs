//! How people sign up, as configured.

use metering_core::{PaymentSettings, SignupSettings};
use serde::{Deserialize, Serialize};

use crate::config::{CreditAmount, Secret, Span};

/// How people sign up.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SignupConfig {
    /// Free credits of a new account, beside those it bought.
    pub free_credits: CreditAmount,
    /// How long a signup can be approved.
    pub session_lifetime: Span,
    /// How long clients are told to wait between two questions whether it was.
    pub poll_interval: Span,
    /// What must be passed before a signup is approved.
    pub bot_check: BotCheckKind,
    /// How hard ALTCHA's work is: iterations for each of the few hundred hashes that a browser tries.
    pub altcha_cost: u32,
    /// By how much that work is multiplied at most where there were many signups lately, from a network or in all, 1 to
    /// 32; 1 for never.
    pub altcha_max_factor: u32,
    /// What ALTCHA's challenges are signed with, 16 characters or more; by default each process draws its own, so that
    /// several servers behind one address need it.
    pub challenge_secret: Option<Secret>,
    /// Cloudflare Turnstile.
    pub turnstile: TurnstileConfig,
}

/// What must be passed before a signup is approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BotCheckKind {
    /// ALTCHA, a proof of work: nobody else is asked.
    Altcha,
    /// Cloudflare Turnstile.
    Turnstile,
    /// Nothing.
    Off,
}

/// Cloudflare Turnstile.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TurnstileConfig {
    /// The site's public key.
    pub site_key: String,
    /// The site's secret.
    pub secret: Option<Secret>,
    /// Where tokens are verified.
    pub verify_url: String,
}

impl Default for SignupConfig {
    fn default() -> Self {
        let SignupSettings { session_lifetime, poll_interval, .. } = SignupSettings::default();
        Self {
            free_credits: CreditAmount::of(PaymentSettings::default().signup_bonus),
            session_lifetime: Span::seconds(session_lifetime.as_secs()),
            poll_interval: Span::seconds(poll_interval.as_secs()),
            bot_check: BotCheckKind::Altcha,
            altcha_cost: 5_000,
            altcha_max_factor: 16,
            challenge_secret: None,
            turnstile: TurnstileConfig::default(),
        }
    }
}

impl Default for TurnstileConfig {
    fn default() -> Self {
        Self {
            site_key: String::new(),
            secret: None,
            verify_url: "https://challenges.cloudflare.com/turnstile/v0/siteverify".to_owned(),
        }
    }
}
