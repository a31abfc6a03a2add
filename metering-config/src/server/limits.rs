//! Rate limits for requests without a key, and for what accounts do; and how many keys an account may have.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::server::{Quota, Span};

/// Rate limits for requests without a key, and for what accounts do. Each process counts separately.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Signups, quotes, claims, top-ups and invitations by mail per client address.
    pub signup_per_ip: Quota,
    /// Signups, quotes, claims, top-ups and invitations by mail per network: a /24 of IPv4, a /48 of IPv6.
    pub signup_per_network: Quota,
    /// Signups per email address, from all clients together.
    pub signup_per_email: Quota,
    /// Signups per email address and client network.
    pub signup_per_email_and_network: Quota,
    /// Bot challenges, user code lookups and approvals per client address.
    pub verification_per_ip: Quota,
    /// Bot challenges, user code lookups and approvals per network.
    pub verification_per_network: Quota,
    /// Signup status polls per client address.
    pub polls_per_ip: Quota,
    /// Key recovery requests per client address.
    pub recovery_per_ip: Quota,
    /// Recovery links per email address. Further requests are accepted, but send nothing: the last link still works.
    pub recovery_mails_per_email: Quota,
    /// Recovery links, and verification links after an account's first, per email address and client network.
    pub mails_per_email_and_network: Quota,
    /// Verification links per account, in addition to the first.
    pub verification_mails_per_account: Quota,
    /// Verification links per email address for all accounts that name it, in addition to the first of each.
    pub verification_mails_per_email: Quota,
    /// Requests that name a wallet, per wallet, from all clients together.
    pub per_wallet: Quota,
    /// Quotes per wallet and client network.
    pub quotes_per_wallet_and_network: Quota,
    /// Requests for a top-up quote per account, from all clients together.
    pub topup_quotes_per_account: Quota,
    /// Status polls of top-up quotes per account, from all clients together.
    pub topup_polls_per_account: Quota,
    /// Reports of leaked keys per client address.
    pub leak_reports_per_ip: Quota,
    /// Keys created, changed, rotated and deleted by each key, and refreshes of a program's key, from all clients together.
    pub key_changes_per_key: Quota,
    /// Keys created, changed, rotated and deleted by all keys of an account together, except its first one.
    pub key_changes_per_account: Quota,
    /// Tests of webhooks and resent deliveries, per account, from all clients together.
    pub webhook_tests_per_account: Quota,
    /// New payments that come with requests, per client address.
    pub payments_per_ip: Quota,
    /// New payments that come with requests, per wallet that pays.
    pub payments_per_wallet: Quota,
    /// How many keys an account may have at a time. Not a rate: all processes of a database count together.
    pub max_keys_per_account: NonZeroU32,
    /// How many child accounts an account may have that are not closed; 0 for none.
    pub max_child_accounts: u32,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let quota = |requests, per| Quota::new(requests, per).expect("within the bounds");
        let (minute, ten_minutes, hour) = (Span::seconds(60), Span::seconds(600), Span::seconds(3_600));
        let half_an_hour = Span::seconds(1_800);
        Self {
            signup_per_ip: quota(30, minute),
            signup_per_network: quota(300, minute),
            // More than a single network may send, like per_wallet below: a client that names someone else's email
            // address or wallet must not be able to lock the owner out.
            signup_per_email: quota(600, ten_minutes),
            signup_per_email_and_network: quota(10, ten_minutes),
            verification_per_ip: quota(30, minute),
            verification_per_network: quota(300, minute),
            polls_per_ip: quota(120, minute),
            recovery_per_ip: quota(20, minute),
            // Refilled every ten minutes, as long as a recovery link works: whenever this is used up, the mailbox has a
            // working link. So repeated requests cannot lock the owner out.
            recovery_mails_per_email: quota(3, half_an_hour),
            mails_per_email_and_network: quota(6, half_an_hour),
            verification_mails_per_account: quota(3, half_an_hour),
            // More than a single network may request. No account is lost while this is used up.
            verification_mails_per_email: quota(12, half_an_hour),
            per_wallet: quota(600, ten_minutes),
            // A quote reserves its tag among its wallet's quotes for a week or more, and a price with six decimals has
            // 9,999 tags. This limit lets one network reserve a third of them in that time.
            quotes_per_wallet_and_network: quota(20, hour),
            // Most of them return the quote that is open.
            topup_quotes_per_account: quota(60, ten_minutes),
            // The page polls at most every two seconds, so four of them may be open.
            topup_polls_per_account: quota(120, minute),
            leak_reports_per_ip: quota(60, minute),
            // Ended keys stay in the database for an hour at least, so this bounds how many an account has there.
            key_changes_per_key: quota(300, minute),
            // Each change may be an event to every webhook of the account, so more keys must not mean more changes.
            key_changes_per_account: quota(600, ten_minutes),
            webhook_tests_per_account: quota(10, minute),
            // A client without a key pays for each request. Each new payment costs about four calls of the chain's
            // node.
            payments_per_ip: quota(120, minute),
            payments_per_wallet: quota(60, minute),
            max_keys_per_account: NonZeroU32::new(1_000).expect("not zero"),
            max_child_accounts: 0,
        }
    }
}
