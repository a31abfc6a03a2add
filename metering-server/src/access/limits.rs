//! Rate limits for requests without a key: signups, quotes, claims, recovery, leaked keys; and for an account's
//! top-up quotes and changes of its keys.
//!
//! Such requests cost work before any payment: writes, random numbers, signatures, RPC calls to a chain. These limits
//! protect against floods. An account's requests are counted by account, since it may use many addresses. All are kept
//! in memory, per process, and lost on restart. The rate limits of an account are different: exact, durable, shared by
//! all processes, and enforced by the store.

mod limiter;
mod network;
mod payer_key;
mod payments;

use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use metering_core::access::{AccountId, Email, Key, KeyId};
use metering_core::chains::Address;
use metering_core::signups::{SessionHash, SessionToken};
use metering_core::wire::ErrorCode;

use crate::config::{LimitsConfig, Span};
use crate::http::{ClientAddress, Problem};
use limiter::Limiter;
pub(crate) use network::Network;
use payer_key::PayerKey;

/// A status poll may arrive this much before the announced interval has passed. Network delays vary, and a client that
/// polls exactly at the interval must not be refused.
const POLL_SLACK: Duration = Duration::from_millis(500);

/// All rate limits.
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
    recovery_mail: Limiter<String, C>,
    sign_in_mail: Limiter<String, C>,
    mail_network: Limiter<(String, Network), C>,
    verification_mail: Limiter<AccountId, C>,
    verification_mail_address: Limiter<String, C>,
    wallet: Limiter<Address, C>,
    quotes: Limiter<(Address, Network), C>,
    top_up_quotes: Limiter<AccountId, C>,
    top_up_polls: Limiter<AccountId, C>,
    leak_reports: Limiter<Network, C>,
    key_changes: Limiter<KeyId, C>,
    account_key_changes: Limiter<AccountId, C>,
    webhook_tests: Limiter<AccountId, C>,
    payments: Limiter<Network, C>,
    payments_wallet: Limiter<PayerKey, C>,
}

impl Limits {
    /// The configured limits, on the process's monotonic clock.
    #[must_use]
    pub(crate) fn new(config: &LimitsConfig, poll_interval: Span) -> Self {
        Self::with_clock(config, poll_interval, DefaultClock::default())
    }
}

impl<C: Clock + Clone> Limits<C> {
    fn with_clock(config: &LimitsConfig, poll_interval: Span, clock: C) -> Self {
        // Clients get the interval in whole seconds, at least one.
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
            recovery_mail: Limiter::new(config.recovery_mails_per_email, clock.clone()),
            sign_in_mail: Limiter::new(config.recovery_mails_per_email, clock.clone()),
            mail_network: Limiter::new(config.mails_per_email_and_network, clock.clone()),
            verification_mail: Limiter::new(config.verification_mails_per_account, clock.clone()),
            verification_mail_address: Limiter::new(config.verification_mails_per_email, clock.clone()),
            wallet: Limiter::new(config.per_wallet, clock.clone()),
            quotes: Limiter::new(config.quotes_per_wallet_and_network, clock.clone()),
            top_up_quotes: Limiter::new(config.topup_quotes_per_account, clock.clone()),
            top_up_polls: Limiter::new(config.topup_polls_per_account, clock.clone()),
            leak_reports: Limiter::new(config.leak_reports_per_ip, clock.clone()),
            key_changes: Limiter::new(config.key_changes_per_key, clock.clone()),
            account_key_changes: Limiter::new(config.key_changes_per_account, clock.clone()),
            webhook_tests: Limiter::new(config.webhook_tests_per_account, clock.clone()),
            payments: Limiter::new(config.payments_per_ip, clock.clone()),
            payments_wallet: Limiter::new(config.payments_per_wallet, clock),
        }
    }

    /// Applies these limits from now on. Unchanged limits keep their counts.
    pub(crate) fn replace(&self, config: &LimitsConfig) {
        self.signup.replace(config.signup_per_ip);
        self.signup_network.replace(config.signup_per_network);
        self.email.replace(config.signup_per_email);
        self.email_network.replace(config.signup_per_email_and_network);
        self.verification.replace(config.verification_per_ip);
        self.verification_network.replace(config.verification_per_network);
        self.polls.replace(config.polls_per_ip);
        self.recovery.replace(config.recovery_per_ip);
        self.recovery_mail.replace(config.recovery_mails_per_email);
        self.sign_in_mail.replace(config.recovery_mails_per_email);
        self.mail_network.replace(config.mails_per_email_and_network);
        self.verification_mail.replace(config.verification_mails_per_account);
        self.verification_mail_address.replace(config.verification_mails_per_email);
        self.wallet.replace(config.per_wallet);
        self.quotes.replace(config.quotes_per_wallet_and_network);
        self.top_up_quotes.replace(config.topup_quotes_per_account);
        self.top_up_polls.replace(config.topup_polls_per_account);
        self.leak_reports.replace(config.leak_reports_per_ip);
        self.key_changes.replace(config.key_changes_per_key);
        self.account_key_changes.replace(config.key_changes_per_account);
        self.webhook_tests.replace(config.webhook_tests_per_account);
        self.payments.replace(config.payments_per_ip);
        self.payments_wallet.replace(config.payments_per_wallet);
    }

    /// Counts a signup, quote, claim, top-up or invitation by mail of a client.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn signup(&self, client: &ClientAddress) -> Result<(), Problem> {
        let refused = |seconds| refusal("Too many signup requests from your network address", seconds);
        self.signup.check(&Network::of(client.ip())).map_err(refused)?;
        let refused = |seconds| refusal("Too many signup requests from your network", seconds);
        self.signup_network.check(&Network::around(client.ip())).map_err(refused)
    }

    /// Counts a signup for an email address. The network's quota is checked first: a signup that it refuses does not
    /// count for the address, so locking out the address's owner takes many networks.
    ///
    /// # Errors
    /// 429 when the limit of this network or the total limit is reached.
    pub(crate) fn email(&self, client: &ClientAddress, email: &Email) -> Result<(), Problem> {
        let email = email.folded();
        let refused = |seconds| refusal("Too many signups for this email address from your network", seconds);
        self.email_network.check(&(email.clone(), Network::around(client.ip()))).map_err(refused)?;
        let refused = |seconds| refusal("Too many signups for this email address", seconds);
        self.email.check(&email).map_err(refused)
    }

    /// Counts a client's request for a bot challenge, user code lookup or signup approval.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn verification(&self, client: &ClientAddress) -> Result<(), Problem> {
        let refused = |seconds| refusal("Too many attempts from your network address", seconds);
        self.verification.check(&Network::of(client.ip())).map_err(refused)?;
        let refused = |seconds| refusal("Too many attempts from your network", seconds);
        self.verification_network.check(&Network::around(client.ip())).map_err(refused)
    }

    /// Counts a signup status poll.
    ///
    /// # Errors
    /// 429 when the interval has clearly not passed yet, or the client has polled too often.
    pub(crate) fn poll(&self, client: &ClientAddress, token: &str) -> Result<(), Problem> {
        let refused = |seconds| refusal("Too many status polls from your network address", seconds);
        self.polls.check(&Network::of(client.ip())).map_err(refused)?;
        // A malformed token belongs to no session, so do not store it.
        let Ok(token) = SessionToken::parse(token) else { return Ok(()) };
        self.sessions.check(&token.hash()).map_err(|seconds| refusal("Polled sooner than the interval allows", seconds))
    }

    /// Counts a client's key recovery request.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn recovery(&self, client: &ClientAddress) -> Result<(), Problem> {
        let refused = |seconds| refusal("Too many key recovery requests from your network address", seconds);
        self.recovery.check(&Network::of(client.ip())).map_err(refused)
    }

    /// Counts recovery mail to an address, and returns whether to send it. A refusal does not lock the owner out: the
    /// quota is refilled as often as a link expires, so the mailbox has a working link.
    pub(crate) fn recovery_mail(&self, email: &Email) -> bool {
        self.recovery_mail.check(&email.folded()).is_ok()
    }

    /// The same for mail with a link that signs in. Counted apart, so that each kind of link stays available.
    pub(crate) fn sign_in_mail(&self, email: &Email) -> bool {
        self.sign_in_mail.check(&email.folded()).is_ok()
    }

    /// Counts a request for mail to an address, known or not, from the client's network.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn mail(&self, client: &ClientAddress, email: &Email) -> Result<(), Problem> {
        let refused = |seconds| refusal("Too many links for this email address from your network", seconds);
        self.mail_network.check(&(email.folded(), Network::around(client.ip()))).map_err(refused)
    }

    /// Counts verification mail that an account's owner asked for: for the network, the account, whatever its key is
    /// by now, and the address, which many accounts may name.
    ///
    /// # Errors
    /// 429 when a limit is reached.
    pub(crate) fn verification_mail(
        &self,
        client: &ClientAddress,
        account: &AccountId,
        email: &Email,
    ) -> Result<(), Problem> {
        self.mail(client, email)?;
        let refused = |seconds| refusal("Too many links for this account", seconds);
        self.verification_mail.check(account).map_err(refused)?;
        let refused = |seconds| refusal("Too many links for this email address", seconds);
        self.verification_mail_address.check(&email.folded()).map_err(refused)
    }

    /// Counts a request that names a wallet, from any client. Anyone may name any wallet, so check the client's own
    /// limit first: it then takes many clients to use up a wallet's limit, or to fill memory with made-up wallets.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn wallet(&self, wallet: &Address) -> Result<(), Problem> {
        self.wallet.check(wallet).map_err(|seconds| refusal("Too many requests for this wallet", seconds))
    }

    /// Counts a quote for a wallet, in the same order as [`Self::email`]: quotes use up tags that the wallet's owner
    /// needs.
    ///
    /// # Errors
    /// 429 when the limit of this network or the total limit is reached.
    pub(crate) fn quote(&self, client: &ClientAddress, wallet: &Address) -> Result<(), Problem> {
        let refused = |seconds| refusal("Too many quotes for this wallet from your network", seconds);
        self.quotes.check(&(*wallet, Network::around(client.ip()))).map_err(refused)?;
        self.wallet(wallet)
    }

    /// Counts an account's request for a top-up quote, whatever its key is and wherever it comes from.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn top_up_quote(&self, account: &AccountId) -> Result<(), Problem> {
        let refused = |seconds| refusal("Too many requests for top-up quotes by this account", seconds);
        self.top_up_quotes.check(account).map_err(refused)
    }

    /// Counts an account's status poll of a top-up quote.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn top_up_poll(&self, account: &AccountId) -> Result<(), Problem> {
        let refused = |seconds| refusal("Too many status polls of top-up quotes by this account", seconds);
        self.top_up_polls.check(account).map_err(refused)
    }

    /// Counts a client's report of a leaked key.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn leak_report(&self, client: &ClientAddress) -> Result<(), Problem> {
        let refused = |seconds| refusal("Too many reports of leaked keys from your network address", seconds);
        self.leak_reports.check(&Network::of(client.ip())).map_err(refused)
    }

    /// Counts a change of keys that this key asks for: for the key, and, unless it is the account's first one, for all
    /// such keys of the account together, so that more keys do not mean more changes. The first key has only its own
    /// quota: no child key can keep the owner from deleting it.
    ///
    /// # Errors
    /// 429 when a limit is reached.
    pub(crate) fn key_changes(&self, actor: &Key) -> Result<(), Problem> {
        let refused = |seconds| refusal("Too many changes of keys", seconds);
        self.key_changes.check(&actor.id).map_err(refused)?;
        if actor.number.is_first() {
            return Ok(());
        }
        let refused = |seconds| refusal("Too many changes of keys by this account's other keys", seconds);
        self.account_key_changes.check(&actor.account).map_err(refused)
    }

    /// Counts a refresh of an access token, which rotates its key.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn refresh(&self, key: &KeyId) -> Result<(), Problem> {
        self.key_changes.check(key).map_err(|seconds| refusal("Too many refreshes of this access", seconds))
    }

    /// Counts a test of a webhook, or a resent delivery. Each is a request to a URL that the account
    /// chose.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn webhook_test(&self, account: &AccountId) -> Result<(), Problem> {
        let refused = |seconds| refusal("Too many tests of webhooks and resent deliveries by this account", seconds);
        self.webhook_tests.check(account).map_err(refused)
    }

    /// Forgets clients whose whole quota is available again, and releases their memory.
    ///
    /// The number of remembered clients has no cap. Refusing new clients above a cap would let an attacker with many
    /// addresses lock everyone out; admitting them uncounted would let the attacker switch off the limits. Memory is
    /// bounded anyway: a client that sent one request is forgotten by the first call at least two intervals of its
    /// quota later, so a flood takes about fifty bytes, plus an email address, per request of the last minutes.
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
        self.recovery_mail.forget_idle();
        self.sign_in_mail.forget_idle();
        self.mail_network.forget_idle();
        self.verification_mail.forget_idle();
        self.verification_mail_address.forget_idle();
        self.wallet.forget_idle();
        self.quotes.forget_idle();
        self.top_up_quotes.forget_idle();
        self.top_up_polls.forget_idle();
        self.leak_reports.forget_idle();
        self.key_changes.forget_idle();
        self.account_key_changes.forget_idle();
        self.webhook_tests.forget_idle();
        self.payments.forget_idle();
        self.payments_wallet.forget_idle();
    }
}

fn refusal(what: &str, seconds: u64) -> Problem {
    let message = format!("{what}; try again in {seconds} s.");
    Problem::new(ErrorCode::RateLimited, message).retry_after(seconds)
}

#[cfg(test)]
mod tests;
