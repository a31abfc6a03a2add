//! How often clients may ask for what needs no key.

use serde::{Deserialize, Serialize};

use crate::config::{Quota, Span};

/// How often clients may ask for what needs no key. Counted in each process by itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Signups, quotes and claims, for each client's address.
    pub signup_per_ip: Quota,
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
            recovery_per_ip: quota(20, minute),
            // More than one address can ask for: whoever names a wallet that is not theirs must not lock its owner out.
            per_wallet: quota(600, ten_minutes),
        }
    }
}
