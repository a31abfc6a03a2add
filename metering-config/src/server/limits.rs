//! Rate limits for requests without a key and for accounts, and the number of keys per account.

use std::num::NonZeroU32;

use crate::server::section::section;
use crate::server::{Quota, Span};

const MINUTE: Span = Span::seconds(60);
const TEN_MINUTES: Span = Span::seconds(600);
const HALF_AN_HOUR: Span = Span::seconds(1_800);
const HOUR: Span = Span::seconds(3_600);

section! {
    /// Rate limits for requests without a key and for accounts, and the number of keys per account. Each process counts
    /// separately.
    pub struct LimitsConfig;

    /// Signups, quotes, claims, top-ups and invitations by mail per client address.
    signup_per_ip: Quota = quota(30, MINUTE),
    /// Signups, quotes, claims, top-ups and invitations by mail per network: a /24 of IPv4, a /48 of IPv6.
    signup_per_network: Quota = quota(300, MINUTE),
    /// Signups per email address, from all clients together.
    // Higher than the limit of a single network, like `per_wallet` below: a client that names someone else's email
    // address or wallet must not be able to lock the owner out.
    signup_per_email: Quota = quota(600, TEN_MINUTES),
    /// Signups per email address and client network.
    signup_per_email_and_network: Quota = quota(10, TEN_MINUTES),
    /// Bot challenges, user code lookups and approvals per client address.
    verification_per_ip: Quota = quota(30, MINUTE),
    /// Bot challenges, user code lookups and approvals per network.
    verification_per_network: Quota = quota(300, MINUTE),
    /// Signup status polls per client address.
    polls_per_ip: Quota = quota(120, MINUTE),
    /// Key recovery requests per client address.
    recovery_per_ip: Quota = quota(20, MINUTE),
    /// Recovery links per email address. Further requests are accepted, but send nothing: the last link still works.
    // One refills every ten minutes, the lifetime of a recovery link. So whenever the limit is used up, the mailbox has
    // a working link, and repeated requests cannot lock the owner out.
    recovery_mails_per_email: Quota = quota(3, HALF_AN_HOUR),
    /// Recovery links, and verification links after an account's first, per email address and client network.
    mails_per_email_and_network: Quota = quota(6, HALF_AN_HOUR),
    /// Verification links per account, in addition to the first.
    verification_mails_per_account: Quota = quota(3, HALF_AN_HOUR),
    /// Verification links per email address for all accounts that name it, in addition to the first of each.
    // Higher than the limit of a single network. No account is lost while this limit is used up.
    verification_mails_per_email: Quota = quota(12, HALF_AN_HOUR),
    /// Requests that name a wallet, per wallet, from all clients together.
    per_wallet: Quota = quota(600, TEN_MINUTES),
    /// Quotes per wallet and client network.
    // A quote reserves its tag among its wallet's quotes for a week or more, and a price with six decimals has 9,999
    // tags. This limit lets one network reserve a third of them in that time.
    quotes_per_wallet_and_network: Quota = quota(20, HOUR),
    /// Requests for a top-up quote per account, from all clients together.
    // Most of them return the open quote.
    topup_quotes_per_account: Quota = quota(60, TEN_MINUTES),
    /// Status polls of top-up quotes per account, from all clients together.
    // The page polls at most every two seconds, so four of them may be open.
    topup_polls_per_account: Quota = quota(120, MINUTE),
    /// Reports of leaked keys per client address.
    leak_reports_per_ip: Quota = quota(60, MINUTE),
    /// Keys created, changed, rotated and deleted by each key, and refreshes of a program's key, from all clients together.
    // Ended keys stay in the database for an hour at least, so this bounds how many an account has there.
    key_changes_per_key: Quota = quota(300, MINUTE),
    /// Keys created, changed, rotated and deleted by all keys of an account together, except its first one.
    // Each change may be an event to every webhook of the account, so more keys must not mean more changes.
    key_changes_per_account: Quota = quota(600, TEN_MINUTES),
    /// Tests of webhooks and resent deliveries, per account, from all clients together.
    webhook_tests_per_account: Quota = quota(10, MINUTE),
    /// New payments that come with requests, per client address.
    // A client without a key pays for each request. Each new payment costs about four calls of the chain's node.
    payments_per_ip: Quota = quota(120, MINUTE),
    /// New payments that come with requests, per wallet that pays.
    payments_per_wallet: Quota = quota(60, MINUTE),
    /// How many keys an account may have at a time. Not a rate: all processes of a database count together.
    max_keys_per_account: NonZeroU32 = NonZeroU32::new(1_000).expect("not zero"),
    /// How many child accounts an account may have that are not closed; 0 for none.
    max_child_accounts: u32 = 0,
}

fn quota(requests: u32, per: Span) -> Quota {
    Quota::new(requests, per).expect("within the bounds")
}
