//! How often clients may ask for what needs no key.

use serde::{Deserialize, Serialize};

use crate::config::{Quota, Span};

/// How often clients may ask for what needs no key. Counted in each process by itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Signups, quotes, claims and top-ups, for each client's address.
    pub signup_per_ip: Quota,
    /// The same, for each network of neighbouring addresses: a /24 of IPv4, a /48 of IPv6.
    pub signup_per_network: Quota,
    /// Signups that name an email address, for each address, whoever they are from.
    pub signup_per_email: Quota,
    /// The same, for each network that they are from.
    pub signup_per_email_and_network: Quota,
    /// Bot challenges, looks at user codes and approvals, for each client's address.
    pub verification_per_ip: Quota,
    /// The same, for each network.
    pub verification_per_network: Quota,
    /// Questions how a signup stands, for each client's address.
    pub polls_per_ip: Quota,
    /// Key recovery, for each client's address.
    pub recovery_per_ip: Quota,
    /// Whatever names a wallet, for each wallet, whoever it is from.
    pub per_wallet: Quota,
    /// Quotes for a wallet, for each network that they are from.
    pub quotes_per_wallet_and_network: Quota,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let quota = |requests, per| Quota::new(requests, per).expect("within the bounds");
        let (minute, ten_minutes, hour) = (Span::seconds(60), Span::seconds(600), Span::seconds(3_600));
        Self {
            signup_per_ip: quota(30, minute),
            signup_per_network: quota(300, minute),
            // More than one network can ask for, as below: whoever names an email address or a wallet that is not theirs
            // must not lock its owner out.
            signup_per_email: quota(600, ten_minutes),
            signup_per_email_and_network: quota(10, ten_minutes),
            verification_per_ip: quota(30, minute),
            verification_per_network: quota(300, minute),
            polls_per_ip: quota(120, minute),
            recovery_per_ip: quota(20, minute),
            per_wallet: quota(600, ten_minutes),
            // A quote keeps its tag from others of its wallet for a week and longer, and there are 9,999 tags at a price of
            // six decimals: this is a third of them in that time.
            quotes_per_wallet_and_network: quota(20, hour),
        }
    }
}
