//! Configuration of signup.

use std::path::PathBuf;

use metering_core::service::{PaymentSettings, SignupSettings};
use serde::{Deserialize, Serialize};

use crate::server::section::section;
use crate::server::{CreditAmount, Secret, Span};

section! {
    /// Signing up.
    pub struct SignupConfig;

    /// Free credits of a new account, in addition to those it bought.
    free_credits: CreditAmount = CreditAmount::of(PaymentSettings::default().signup_bonus),
    /// How long a signup session can be approved.
    session_lifetime: Span = Span::seconds(SignupSettings::default().session_lifetime.as_secs()),
    /// The interval at which clients should poll the signup status.
    poll_interval: Span = Span::seconds(SignupSettings::default().poll_interval.as_secs()),
    /// Whether a new account must verify its email address to get its free credits. By default yes, if `[smtp]` is set.
    verify_email: Option<bool>,
    /// The bot challenge that must be passed before a signup is approved.
    bot_check: BotCheckKind = BotCheckKind::Altcha,
    /// ALTCHA's cost: iterations for each of the few hundred hashes that a browser tries.
    altcha_cost: u32 = 5_000,
    /// The maximum factor, 1 to 32, by which that work grows after many recent signups, from one network or in total; 1
    /// means it never grows.
    altcha_max_factor: u32 = 16,
    /// The secret that signs ALTCHA challenges, at least 16 characters. By default each process generates its own, so
    /// several servers behind one address must share a configured one.
    challenge_secret: Option<Secret>,
    /// A file with that secret, instead of `challenge_secret`.
    challenge_secret_file: Option<PathBuf>,
    /// Cloudflare Turnstile.
    turnstile: TurnstileConfig,
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

section! {
    /// Cloudflare Turnstile.
    pub struct TurnstileConfig;

    /// The site's public key.
    site_key: String,
    /// The site's secret.
    secret: Option<Secret>,
    /// A file with that secret, instead of `secret`.
    secret_file: Option<PathBuf>,
    /// The URL that verifies tokens.
    verify_url: String = "https://challenges.cloudflare.com/turnstile/v0/siteverify".to_owned(),
}
