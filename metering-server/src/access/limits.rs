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

use std::hash::Hash;
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

/// Declares the limits: whom each counts, and the key of its quota.
macro_rules! limits {
    ($($limit:ident: $who:ty = $quota:ident;)+) => {
        /// All rate limits.
        #[derive(Debug)]
        pub(crate) struct Limits<C: Clock = DefaultClock> {
            $($limit: Limiter<$who, C>,)+
            /// Status polls of a signup. Their interval is not a quota.
            sessions: Limiter<SessionHash, C>,
        }

        impl<C: Clock + Clone> Limits<C> {
            fn with_clock(config: &LimitsConfig, poll_interval: Span, clock: C) -> Self {
                // Clients get the interval in whole seconds, at least one.
                let announced = Duration::from_secs(poll_interval.duration().as_secs().max(1));
                Self {
                    $($limit: Limiter::new(config.$quota, clock.clone()),)+
                    sessions: Limiter::spaced(announced.saturating_sub(POLL_SLACK), clock),
                }
            }

            /// Applies these limits from now on. Unchanged limits keep their counts.
            pub(crate) fn replace(&self, config: &LimitsConfig) {
                $(self.$limit.replace(config.$quota);)+
            }

            /// Forgets clients whose whole quota is available again, and releases their memory.
            ///
            /// The number of remembered clients has no cap. Refusing new clients above a cap would let an attacker with
            /// many addresses lock everyone out; admitting them uncounted would let the attacker switch off the limits.
            /// Memory is bounded anyway: a client that sent one request is forgotten by the first call at least two
            /// intervals of its quota later, so a flood takes about fifty bytes, plus an email address, per request of
            /// the last minutes.
            pub(crate) fn forget_idle(&self) {
                $(self.$limit.forget_idle();)+
                self.sessions.forget_idle();
            }
        }
    };
}

limits! {
    signup: Network = signup_per_ip;
    signup_network: Network = signup_per_network;
    email: String = signup_per_email;
    email_network: (String, Network) = signup_per_email_and_network;
    verification: Network = verification_per_ip;
    verification_network: Network = verification_per_network;
    polls: Network = polls_per_ip;
    recovery: Network = recovery_per_ip;
    recovery_mail: String = recovery_mails_per_email;
    sign_in_mail: String = recovery_mails_per_email;
    mail_network: (String, Network) = mails_per_email_and_network;
    verification_mail: AccountId = verification_mails_per_account;
    verification_mail_address: String = verification_mails_per_email;
    wallet: Address = per_wallet;
    quotes: (Address, Network) = quotes_per_wallet_and_network;
    top_up_quotes: AccountId = topup_quotes_per_account;
    top_up_polls: AccountId = topup_polls_per_account;
    leak_reports: Network = leak_reports_per_ip;
    key_changes: KeyId = key_changes_per_key;
    account_key_changes: AccountId = key_changes_per_account;
    webhook_tests: AccountId = webhook_tests_per_account;
    payments: Network = payments_per_ip;
    payments_wallet: PayerKey = payments_per_wallet;
}

impl Limits {
    /// The configured limits, on the process's monotonic clock.
    #[must_use]
    pub(crate) fn new(config: &LimitsConfig, poll_interval: Span) -> Self {
        Self::with_clock(config, poll_interval, DefaultClock::default())
    }
}

impl<C: Clock + Clone> Limits<C> {
    /// Counts a signup, quote, claim, top-up or invitation by mail of a client.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn signup(&self, client: &ClientAddress) -> Result<(), Problem> {
        allow(&self.signup, &Network::of(client.ip()), "Too many signup requests from your network address")?;
        allow(&self.signup_network, &Network::around(client.ip()), "Too many signup requests from your network")
    }

    /// Counts a signup for an email address. The network's quota is checked first: a signup that it refuses does not
    /// count for the address, so locking out the address's owner takes many networks.
    ///
    /// # Errors
    /// 429 when the limit of this network or the total limit is reached.
    pub(crate) fn email(&self, client: &ClientAddress, email: &Email) -> Result<(), Problem> {
        let email = email.folded();
        allow(
            &self.email_network,
            &(email.clone(), Network::around(client.ip())),
            "Too many signups for this email address from your network",
        )?;
        allow(&self.email, &email, "Too many signups for this email address")
    }

    /// Counts a client's request for a bot challenge, user code lookup or signup approval.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn verification(&self, client: &ClientAddress) -> Result<(), Problem> {
        allow(&self.verification, &Network::of(client.ip()), "Too many attempts from your network address")?;
        allow(&self.verification_network, &Network::around(client.ip()), "Too many attempts from your network")
    }

    /// Counts a signup status poll.
    ///
    /// # Errors
    /// 429 when the interval has clearly not passed yet, or the client has polled too often.
    pub(crate) fn poll(&self, client: &ClientAddress, token: &str) -> Result<(), Problem> {
        allow(&self.polls, &Network::of(client.ip()), "Too many status polls from your network address")?;
        // A malformed token belongs to no session, so do not store it.
        let Ok(token) = SessionToken::parse(token) else { return Ok(()) };
        allow(&self.sessions, &token.hash(), "Polled sooner than the interval allows")
    }

    /// Counts a client's key recovery request.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn recovery(&self, client: &ClientAddress) -> Result<(), Problem> {
        allow(&self.recovery, &Network::of(client.ip()), "Too many key recovery requests from your network address")
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
        allow(
            &self.mail_network,
            &(email.folded(), Network::around(client.ip())),
            "Too many links for this email address from your network",
        )
    }

    /// Counts verification mail that an account's owner requested: for the network, for the account across key changes,
    /// and for the address, which many accounts may name.
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
        allow(&self.verification_mail, account, "Too many links for this account")?;
        allow(&self.verification_mail_address, &email.folded(), "Too many links for this email address")
    }

    /// Counts a request that names a wallet, from any client. Anyone may name any wallet, so check the client's own
    /// limit first: it then takes many clients to use up a wallet's limit, or to fill memory with made-up wallets.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn wallet(&self, wallet: &Address) -> Result<(), Problem> {
        allow(&self.wallet, wallet, "Too many requests for this wallet")
    }

    /// Counts a quote for a wallet, in the same order as [`Self::email`]: quotes use up tags that the wallet's owner
    /// needs.
    ///
    /// # Errors
    /// 429 when the limit of this network or the total limit is reached.
    pub(crate) fn quote(&self, client: &ClientAddress, wallet: &Address) -> Result<(), Problem> {
        allow(
            &self.quotes,
            &(*wallet, Network::around(client.ip())),
            "Too many quotes for this wallet from your network",
        )?;
        self.wallet(wallet)
    }

    /// Counts an account's request for a top-up quote, with any of its keys and from any address.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn top_up_quote(&self, account: &AccountId) -> Result<(), Problem> {
        allow(&self.top_up_quotes, account, "Too many requests for top-up quotes by this account")
    }

    /// Counts an account's status poll of a top-up quote.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn top_up_poll(&self, account: &AccountId) -> Result<(), Problem> {
        allow(&self.top_up_polls, account, "Too many status polls of top-up quotes by this account")
    }

    /// Counts a client's report of a leaked key.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn leak_report(&self, client: &ClientAddress) -> Result<(), Problem> {
        allow(
            &self.leak_reports,
            &Network::of(client.ip()),
            "Too many reports of leaked keys from your network address",
        )
    }

    /// Counts a change of keys that this key requests: for the key and, unless it is the account's first one, for all
    /// such keys of the account together. So more keys do not mean more changes. The first key has only its own quota:
    /// no child key can keep the owner from deleting it.
    ///
    /// # Errors
    /// 429 when a limit is reached.
    pub(crate) fn key_changes(&self, actor: &Key) -> Result<(), Problem> {
        allow(&self.key_changes, &actor.id, "Too many changes of keys")?;
        if actor.number.is_first() {
            return Ok(());
        }
        allow(&self.account_key_changes, &actor.account, "Too many changes of keys by this account's other keys")
    }

    /// Counts a refresh of an access token, which rotates its key.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn refresh(&self, key: &KeyId) -> Result<(), Problem> {
        allow(&self.key_changes, key, "Too many refreshes of this access")
    }

    /// Counts a test of a webhook, or a resent delivery. Each is a request to a URL that the account
    /// chose.
    ///
    /// # Errors
    /// 429 when the limit is reached.
    pub(crate) fn webhook_test(&self, account: &AccountId) -> Result<(), Problem> {
        allow(&self.webhook_tests, account, "Too many tests of webhooks and resent deliveries by this account")
    }
}

/// Counts one request of `who`.
///
/// # Errors
/// 429, whose message starts with `what`, when the quota is used up.
fn allow<K: Clone + Eq + Hash, C: Clock>(limiter: &Limiter<K, C>, who: &K, what: &str) -> Result<(), Problem> {
    limiter.check(who).map_err(|seconds| {
        let message = format!("{what}; try again in {seconds} s.");
        Problem::new(ErrorCode::RateLimited, message).retry_after(seconds)
    })
}

#[cfg(test)]
mod tests;
