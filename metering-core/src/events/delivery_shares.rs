//! How much of a courier's slots one account and one host may have, so a slow receiver delays only itself.

use std::collections::HashMap;

use crate::access::account::AccountId;
use crate::events::webhook::Webhook;

/// The deliveries in flight, counted by account and by receiving host.
///
/// ```
/// use metering_core::events::DeliveryShares;
///
/// let mut shares = DeliveryShares::new(1, 2);
/// assert!(shares.take("org_1", "https://hooks.example.com/a"));
/// assert!(!shares.take("org_1", "https://other.example.com/"), "the account has its share");
/// assert!(shares.take("org_2", "https://hooks.example.com/b"));
/// assert!(!shares.take("org_3", "https://hooks.example.com:8443/"), "and so has the host");
/// ```
#[derive(Debug, Clone)]
pub struct DeliveryShares {
    per_account: u32,
    per_host: u32,
    accounts: HashMap<String, u32>,
    hosts: HashMap<String, u32>,
}

impl DeliveryShares {
    /// At most this many in flight for one account, and to one host.
    #[must_use]
    pub fn new(per_account: u32, per_host: u32) -> Self {
        Self { per_account, per_host, accounts: HashMap::new(), hosts: HashMap::new() }
    }

    /// Without any limit.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(u32::MAX, u32::MAX)
    }

    /// Whether there is no limit.
    #[must_use]
    pub const fn is_unlimited(&self) -> bool {
        self.per_account == u32::MAX && self.per_host == u32::MAX
    }

    /// Counts one more to the webhook of an account at a URL, unless the account or the host has its share. Returns
    /// whether it was counted.
    pub fn take(&mut self, account: &str, url: &str) -> bool {
        let of = |counts: &HashMap<String, u32>, who: &str| counts.get(who).copied().unwrap_or(0);
        let fits = of(&self.accounts, account) < self.per_account && of(&self.hosts, host(url)) < self.per_host;
        if fits {
            *self.accounts.entry(account.to_owned()).or_default() += 1;
            *self.hosts.entry(host(url).to_owned()).or_default() += 1;
        }
        fits
    }

    /// The same for a webhook. The operator's own has no account, and no limit.
    pub(crate) fn take_for(&mut self, webhook: &Webhook) -> bool {
        webhook.account.as_ref().is_none_or(|account| self.take(account.as_str(), webhook.terms.url.as_str()))
    }

    /// A counted delivery has ended.
    pub(crate) fn give_back(&mut self, account: &AccountId, url: &str) {
        let less = |counts: &mut HashMap<String, u32>, who: &str| {
            if let Some(count) = counts.get_mut(who) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    counts.remove(who);
                }
            }
        };
        less(&mut self.accounts, account.as_str());
        less(&mut self.hosts, host(url));
    }
}

/// The host of a URL in normal form, without its port.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_one_share_whatever_its_port_and_path() {
        let table = [
            ("https://a.example/", "a.example"),
            ("https://a.example:8443/b:1/c", "a.example"),
            ("http://a.example?b", "a.example"),
            ("https://[2001:db8::1]/", "[2001:db8::1]"),
            ("https://[2001:db8::1]:8443/", "[2001:db8::1]"),
        ];
        for (url, expected) in table {
            assert_eq!(host(url), expected, "{url}");
        }
    }

    #[test]
    fn a_share_that_was_given_back_can_be_taken_again() {
        let mut shares = DeliveryShares::new(1, 1);
        let account: AccountId = "org_xxxxxxxxxxxxxxxxxxxx".parse().unwrap();
        for _ in 0..3 {
            assert!(shares.take(account.as_str(), "https://a.example/1"));
            assert!(!shares.take("org_2", "https://a.example/2"));
            shares.give_back(&account, "https://a.example/1");
        }
        assert!(shares.accounts.is_empty() && shares.hosts.is_empty(), "nothing is remembered");
    }
}
