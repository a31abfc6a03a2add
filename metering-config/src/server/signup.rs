//! Configuration of signup.

use std::path::PathBuf;

use metering_core::service::{PaymentSettings, SignupSettings};
use serde::{Deserialize, Serialize};

use crate::server::{CreditAmount, Secret, Span};

/// Signing up.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SignupConfig {
    /// Free credits of a new account, in addition to those it bought.
    pub free_credits: CreditAmount,
    /// How long a signup session can be approved.
    pub session_lifetime: Span,
    /// The interval at which clients should poll the signup status.
    pub poll_interval: Span,
    /// Whether a new account must verify its email address to get its free credits. By default yes, if `[smtp]` is set.
    pub verify_email: Option<bool>,
    /// The bot challenge that must be passed before a signup is approved.
    pub bot_check: BotCheckKind,
    /// ALTCHA's cost: iterations for each of the few hundred hashes that a browser tries.
    pub altcha_cost: u32,
    /// The maximum factor, 1 to 32, by which that work grows after many recent signups, from one network or in total; 1
    /// means it never grows.
    pub altcha_max_factor: u32,
    /// The secret that signs ALTCHA challenges, at least 16 characters. By default each process generates its own, so
    /// several servers behind one address must share a configured one.
    pub challenge_secret: Option<Secret>,
    /// A file with that secret, instead of `challenge_secret`.
    pub challenge_secret_file: Option<PathBuf>,
    /// Cloudflare Turnstile.
    pub turnstile: TurnstileConfig,
}

/// The bot challenge for signups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BotCheckKind {
    /// ALTCHA, a proof of work without a third party.
    Altcha,
    /// Cloudflare Turnstile.
    Turnstile,
    /// No challenge.
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
    /// A file with that secret, instead of `secret`.
    pub secret_file: Option<PathBuf>,
    /// The URL that verifies tokens.
    pub verify_url: String,
}

impl Default for SignupConfig {
    fn default() -> Self {
        let SignupSettings { session_lifetime, poll_interval, .. } = SignupSettings::default();
        Self {
            free_credits: CreditAmount::of(PaymentSettings::default().signup_bonus),
            session_lifetime: Span::seconds(session_lifetime.as_secs()),
            poll_interval: Span::seconds(poll_interval.as_secs()),
            verify_email: None,
            bot_check: BotCheckKind::Altcha,
            altcha_cost: 5_000,
            altcha_max_factor: 16,
            challenge_secret: None,
            challenge_secret_file: None,
            turnstile: TurnstileConfig::default(),
        }
    }
}

impl Default for TurnstileConfig {
    fn default() -> Self {
        Self {
            site_key: String::new(),
            secret: None,
            secret_file: None,
            verify_url: "https://challenges.cloudflare.com/turnstile/v0/siteverify".to_owned(),
        }
    }
}
