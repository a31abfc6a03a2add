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
    /// Signups that name an email address, for each address.
    pub signup_per_email: Quota,
    /// Bot challenges, looks at user codes and approvals, for each client's address.
    pub verification_per_ip: Quota,
    /// Questions how a signup stands, for each client's address.
    pub polls_per_ip: Quota,
    /// Key recovery, for each client's address.
    pub recovery_per_ip: Quota,
    /// Whatever names a wallet, for each wallet.
    pub per_wallet: Quota,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let quota = |requests, per| Quota::new(requests, per).expect("within the bounds");
        let (minute, ten_minutes) = (Span::seconds(60), Span::seconds(600));
        Self {
            signup_per_ip: quota(30, minute),
            signup_per_network: quota(300, minute),
            signup_per_email: quota(10, ten_minutes),
            verification_per_ip: quota(30, minute),
            polls_per_ip: quota(120, minute),
            recovery_per_ip: quota(20, minute),
            // More than one address can ask for: whoever names a wallet that is not theirs must not lock its owner out.
            per_wallet: quota(600, ten_minutes),
        }
    }
}
