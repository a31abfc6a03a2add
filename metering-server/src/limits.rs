//! How often one client, and one wallet, may ask for what needs no key: signups, quotes, claims, recovery.
//!
//! Such requests cost work before anybody has paid: writes, random numbers, signatures, calls to a chain's RPC. These
//! limits are brakes against floods, kept in memory, of each process by itself, and gone when it ends. The caps of an
//! account are something else: exact, durable, of all processes together, and the store's business.

mod limiter;
mod network;

use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use metering_core::wire::ErrorCode;
use metering_core::{Address, Email, SessionHash, SessionToken};

use crate::config::{LimitsConfig, Span};
use crate::http::{ClientAddress, Problem};
use limiter::Limiter;
pub(crate) use network::Network;

/// By how much sooner than it was told a session may be asked about: one question may take longer on its way than the
/// next, and whoever comes exactly when told must not be refused for it.
const POLL_SLACK: Duration = Duration::from_millis(500);

/// Counts who asks how often.
#[derive(Debug)]
pub(crate) struct Limits<C: Clock = DefaultClock> {
    signup: Limiter<Network, C>,
    signup_network: Limiter<Network, C>,
    email: Limiter<String, C>,
    email_network: Limiter<(String, Network), C>,
    verification: Limiter<Network, C>,
    verification_network: Limiter<Network, C>,
    polls: Limiter<Network, C>,
    sessions: Limiter<SessionHash, C>,
    recovery: Limiter<Network, C>,
    wallet: Limiter<Address, C>,
    quotes: Limiter<(Address, Network), C>,
}

impl Limits {
    /// The limits that are configured, by the process's monotonic clock.
    #[must_use]
    pub(crate) fn new(config: &LimitsConfig, poll_interval: Span) -> Self {
        Self::with_clock(config, poll_interval, DefaultClock::default())
    }
}

impl<C: Clock + Clone> Limits<C> {
    fn with_clock(config: &LimitsConfig, poll_interval: Span, clock: C) -> Self {
        // What clients are told is in whole seconds, one at least.
        let announced = Duration::from_secs(poll_interval.duration().as_secs().max(1));
        Self {
            signup: Limiter::new(config.signup_per_ip, clock.clone()),
            signup_network: Limiter::new(config.signup_per_network, clock.clone()),
            email: Limiter::new(config.signup_per_email, clock.clone()),
            email_network: Limiter::new(config.signup_per_email_and_network, clock.clone()),
            verification: Limiter::new(config.verification_per_ip, clock.clone()),
            verification_network: Limiter::new(config.verification_per_network, clock.clone()),
            polls: Limiter::new(config.polls_per_ip, clock.clone()),
            sessions: Limiter::spaced(announced.saturating_sub(POLL_SLACK), clock.clone()),
            recovery: Limiter::new(config.recovery_per_ip, clock.clone()),
            wallet: Limiter::new(config.per_wallet, clock.clone()),
            quotes: Limiter::new(config.quotes_per_wallet_and_network, clock),
        }
    }

    /// Counts a client that signs up, asks for a quote, claims one, or tops up.
    ///
    /// # Errors
    /// 429 when it did so too often.
    pub(crate) fn signup(&self, client: &ClientAddress) -> Result<(), Problem> {
        let refused = |seconds| refusal("Too many signup requests from your network address", seconds);
        self.signup.check(&Network::of(client.ip())).map_err(refused)?;
        let refused = |seconds| refusal("Too many signup requests from your network", seconds);
        self.signup_network.check(&Network::around(client.ip())).map_err(refused)
    }

    /// Counts a signup for an email address. The network's own quota comes first: what it refuses is not counted for
    /// the address, so that it takes many networks to lock the address's owner out.
    ///
    /// # Errors
    /// 429 when there were too many, from this network or from all.
    pub(crate) fn email(&self, client: &ClientAddress, email: &Email) -> Result<(), Problem> {
        let email = email.folded();
        let refused = |seconds| refusal("Too many signups for this email address from your network", seconds);
        self.email_network.check(&(email.clone(), Network::around(client.ip()))).map_err(refused)?;
        let refused = |seconds| refusal("Too many signups for this email address", seconds);
        self.email.check(&email).map_err(refused)
    }

    /// Counts a client that asks for a bot challenge, looks at a user code, or approves a signup.
    ///
    /// # Errors
    /// 429 when it did so too often.
    pub(crate) fn verification(&self, client: &ClientAddress) -> Result<(), Problem> {
        let refused = |seconds| refusal("Too many attempts from your network address", seconds);
        self.verification.check(&Network::of(client.ip())).map_err(refused)?;
        let refused = |seconds| refusal("Too many attempts from your network", seconds);
        self.verification_network.check(&Network::around(client.ip())).map_err(refused)
    }

    /// Counts a question how a signup stands.
    ///
    /// # Errors
    /// 429 when it came clearly sooner than the interval allows, or there were too many from one client.
    pub(crate) fn poll(&self, client: &ClientAddress, token: &str) -> Result<(), Problem> {
        let refused = |seconds| refusal("Too many questions from your network address", seconds);
        self.polls.check(&Network::of(client.ip())).map_err(refused)?;
        // What is no token is nobody's session, and is not remembered.
        let Ok(token) = SessionToken::parse(token) else { return Ok(()) };
        self.sessions.check(&token.hash()).map_err(|seconds| refusal("Asked sooner than the interval allows", seconds))
    }

    /// Counts a client that asks for a recovery's challenge or answers one.
    ///
    /// # Errors
    /// 429 when it did so too often.
    pub(crate) fn recovery(&self, client: &ClientAddress) -> Result<(), Problem> {
        let refused = |seconds| refusal("Too many key recovery requests from your network address", seconds);
        self.recovery.check(&Network::of(client.ip())).map_err(refused)
    }

    /// Counts a request that names a wallet, whoever it is from. Anybody may name any wallet: ask for the client's own
    /// limit first, so that it takes many clients to use up a wallet's, or to fill memory with made-up ones.
    ///
    /// # Errors
    /// 429 when there were too many.
    pub(crate) fn wallet(&self, wallet: &Address) -> Result<(), Problem> {
        self.wallet.check(wallet).map_err(|seconds| refusal("Too many requests for this wallet", seconds))
    }

    /// Counts a quote for a wallet, as [`Self::email`] counts a signup: quotes keep tags from the wallet's owner.
    ///
    /// # Errors
    /// 429 when there were too many, from this network or from all.
    pub(crate) fn quote(&self, client: &ClientAddress, wallet: &Address) -> Result<(), Problem> {
        let refused = |seconds| refusal("Too many quotes for this wallet from your network", seconds);
        self.quotes.check(&(*wallet, Network::around(client.ip()))).map_err(refused)?;
        self.wallet(wallet)
    }

    /// Forgets everybody who could not be told from a newcomer any more, and gives their memory back.
    ///
    /// There is no cap on how many are remembered: to refuse newcomers beyond one would let an attacker with many
    /// addresses lock everybody out, to admit them uncounted would let it switch the limits off. What is remembered is
    /// bounded anyhow: who asked once and does not come again is forgotten by the first call that is two of its quota's
    /// intervals later, so that a flood holds some fifty bytes, and an email address, per request of the last minutes.
    pub(crate) fn forget_idle(&self) {
        self.signup.forget_idle();
        self.signup_network.forget_idle();
        self.email.forget_idle();
        self.email_network.forget_idle();
        self.verification.forget_idle();
        self.verification_network.forget_idle();
        self.polls.forget_idle();
        self.sessions.forget_idle();
        self.recovery.forget_idle();
        self.wallet.forget_idle();
        self.quotes.forget_idle();
    }
}

fn refusal(what: &str, seconds: u64) -> Problem {
    let message = format!("{what}; try again in {seconds} s.");
    Problem::new(ErrorCode::RateLimited, message).retry_after(seconds)
}

#[cfg(test)]
mod tests;
