//! Why a request was charged, from its id alone: the id names the key and the moment ([`HoldId::of_charge`]), and the
//! account's recent activity has the charge.

use std::time::Duration;

use crate::access::account::AccountId;
use crate::access::key_id::KeyNumber;
use crate::catalogue::Route;
use crate::charging::hold::HoldId;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::prices::PriceNumber;
use crate::store::{Store, StoreError};
use crate::usage::{ACTIVITY_KEPT, Activity, ActivityKind, KeyLabels, UsageLine};
use crate::wire::{RequestDocument, RequestState};

/// How long after a charge its refund may follow.
const REFUND_WAIT: Duration = Duration::from_secs(900);

/// The charge of a request that held no credits.
#[derive(Debug, Clone)]
pub struct ChargedRequest {
    /// The account that was charged.
    pub account: AccountId,
    /// The key that the request came with.
    pub key: KeyNumber,
    id: HoldId,
    /// The entries of the account's activity that may be the charge, oldest first.
    entries: Vec<Activity>,
    refund: Option<Activity>,
    /// Whether the account's activity is kept back to the charge.
    is_kept: bool,
}

impl ChargedRequest {
    /// The charge that an id names: of this account, or of any. `None` if there is no such key, or its secret is no
    /// longer kept.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn find(store: &dyn Store, id: &HoldId, account: Option<&AccountId>) -> Result<Option<Self>, StoreError> {
        let mut found = None;
        for (of, key) in store.keys_of_request(id).await? {
            if account.is_some_and(|account| *account != of) {
                continue;
            }
            let activity = store.activity(&of, ACTIVITY_KEPT).await?;
            let charged = Self::among(&activity, *id, of, key);
            let is_certain = !charged.entries.is_empty();
            found = found.filter(|_| !is_certain).or(Some(charged));
            if is_certain {
                break;
            }
        }
        Ok(found)
    }

    /// `activity` is newest first.
    fn among(activity: &[Activity], id: HoldId, account: AccountId, key: KeyNumber) -> Self {
        let is_of_key = |entry: &&Activity, kind: ActivityKind| entry.kind == kind && entry.key == Some(key);
        let is_named = |entry: &&Activity| {
            let line = entry.line.as_ref().filter(|_| is_of_key(entry, ActivityKind::Usage));
            line.is_some_and(|line| id.may_be_of(&line.route_template, entry.created_at))
        };
        let entries: Vec<Activity> = activity.iter().rev().filter(is_named).cloned().collect();
        let refund = entries.first().and_then(|charge| {
            let until = charge.created_at.saturating_add(REFUND_WAIT);
            let mut refunds = activity.iter().rev().filter(|entry| is_of_key(entry, ActivityKind::UsageRefund));
            refunds.find(|refund| {
                let is_same = refund.line == charge.line && refund.request_path == charge.request_path;
                is_same && (charge.created_at..=until).contains(&refund.created_at)
            })
        });
        let refund = refund.cloned();
        let is_full = activity.len() >= ACTIVITY_KEPT as usize;
        let is_kept = !is_full || activity.last().is_some_and(|oldest| oldest.created_at < id.made_at());
        Self { account, key, id, entries, refund, is_kept }
    }

    /// When it was charged.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        self.entries.first().map_or_else(|| self.id.made_at(), |entry| entry.created_at)
    }

    /// The usage row that it was booked on; `None` if it is not among the account's activity.
    #[must_use]
    pub fn line(&self) -> Option<&UsageLine> {
        self.entries.first()?.line.as_ref()
    }

    /// When, with which key, for which request and by which price, in plain words. `keys` are those of the account,
    /// `version` is the price version of that time, and `route` is its route.
    #[must_use]
    pub fn in_words(&self, keys: &KeyLabels, version: Option<PriceNumber>, route: Option<&Route>) -> String {
        let at = self.at();
        let key = match keys.get(self.key) {
            Some(label) => format!("the key {} ({})", label.name, label.id),
            None => "a deleted key".to_owned(),
        };
        let [entry, others @ ..] = &*self.entries else {
            return if self.is_kept {
                format!("Nothing was charged to {key} for it: the request of {at} was refused.")
            } else {
                format!(
                    "It was charged to {key} at {at}. Its cost is no longer known: the account's recent activity \
                     begins later. The totals of that day still count it."
                )
            };
        };
        let (method, template) =
            entry.line.as_ref().map_or(("", ""), |line| (&*line.http_method, &*line.route_template));
        let path = entry.request_path.as_deref().unwrap_or(template);
        let (total, calls) = (credits(cost(entry)), entry.calls);
        let mut words = match calls {
            0 | 1 => format!("{method} {path} was charged {total} to {key} at {at}."),
            _ => format!(
                "{calls} requests for {method} {path} were charged together to {key} at {at}, {total} in all. This was \
                 one of them."
            ),
        };
        let price = route.map(|route| route.charge_in_words(share(entry)));
        match (version, price) {
            (Some(version), Some(price)) => words.push_str(&format!(" Price version {version}: {price}.")),
            (Some(version), None) => words.push_str(&format!(" Price version {version} was in force.")),
            (None, Some(price)) => words.push_str(&format!(" The price: {price}.")),
            (None, None) => {}
        }
        if !others.is_empty() {
            let more = others.len();
            words.push_str(&format!(" Other charges of the key fit as well ({more}), so it may be one of those."));
        }
        if let Some(refund) = &self.refund {
            let (amount, at) = (credits(refund.amount), refund.created_at);
            words.push_str(&format!(
                " At {at}, {amount} went back to the balance for the same path: the response was not delivered, or had a \
                 status that costs nothing."
            ));
        }
        words
    }

    /// The request, with this text about it; `None` if it is not among the account's activity.
    #[must_use]
    pub fn document(&self, explanation: String) -> Option<RequestDocument> {
        let entry = self.entries.first()?;
        let line = entry.line.as_ref()?;
        Some(RequestDocument {
            id: self.id.to_string(),
            state: RequestState::Captured,
            held: Credits::ZERO,
            charged: share(entry),
            released: Credits::ZERO,
            settled_by: None,
            route_template: line.route_template.to_string(),
            http_method: line.http_method.to_string(),
            request_path: entry.request_path.as_ref().unwrap_or(&line.route_template).to_string(),
            created_at: entry.created_at,
            expires_at: entry.created_at,
            settled_at: Some(entry.created_at),
            explanation: Some(explanation),
            upstream: None,
            receipt: None,
        })
    }
}

/// The total cost of an entry's requests.
fn cost(entry: &Activity) -> Credits {
    entry.amount.checked_neg().unwrap_or(Credits::MAX)
}

/// The cost of each request of an entry, if it is the same for all.
fn share(entry: &Activity) -> Credits {
    let calls = i64::try_from(entry.calls).unwrap_or(i64::MAX).max(1);
    Credits::from_atoms(cost(entry).atoms() / calls)
}

fn credits(amount: Credits) -> String {
    let unit = if Credits::from_whole(1) == Some(amount) { "credit" } else { "credits" };
    format!("{amount} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::key::KeyHash;
    use crate::random::SystemRandomness;
    use crate::usage::ClientSource;

    const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);
    const KEY: KeyNumber = KeyNumber::FIRST;

    fn later(millis: u64) -> Timestamp {
        NOON.saturating_add(Duration::from_millis(millis))
    }

    fn id(is_committed: bool) -> HoldId {
        let key = KeyHash::from_bytes([7; 32]);
        HoldId::at(NOON, &SystemRandomness).of_charge(&key, "/price/{n}", NOON, is_committed)
    }

    fn entry(kind: ActivityKind, amount: &str, calls: u64, created_at: Timestamp) -> Activity {
        let line =
            UsageLine { route_template: "/price/{n}".into(), http_method: "GET".into(), source: ClientSource::Direct };
        Activity {
            id: "use_1".to_owned(),
            kind,
            amount: amount.parse().unwrap(),
            description: None,
            line: Some(line),
            request_path: Some("/price/7".into()),
            calls,
            payment: None,
            key: Some(KEY),
            created_at,
        }
    }

    fn usage(amount: &str, calls: u64, created_at: Timestamp) -> Activity {
        entry(ActivityKind::Usage, amount, calls, created_at)
    }

    /// The explanation from this activity (newest first), and the amount.
    fn said(id: HoldId, activity: &[Activity]) -> (String, Option<String>) {
        let account = AccountId::generate(&SystemRandomness);
        let charged = ChargedRequest::among(activity, id, account, KEY);
        let words = charged.in_words(&KeyLabels::default(), None, None);
        let amount = charged.document(words.clone()).map(|document| document.charged.to_string());
        (words, amount)
    }

    #[test]
    fn the_entry_of_the_commit_is_the_charge() {
        let (before, after) =
            (usage("-0.1", 1, NOON.saturating_sub(Duration::from_secs(1))), usage("-0.3", 1, later(1)));
        let other = Activity { key: Some(KeyNumber::new(1)), ..usage("-0.4", 1, NOON) };
        let (words, amount) = said(id(true), &[after.clone(), other, usage("-0.2", 1, NOON), before]);
        assert_eq!(amount.as_deref(), Some("0.2"));
        assert!(words.starts_with("GET /price/7 was charged 0.2 credits to a deleted key at 2026-"), "{words}");
        assert!(!words.contains("fit as well"), "{words}");
        // An id that was made before the commit names the charge that follows.
        let (words, amount) = said(id(false), &[after, usage("-0.2", 1, NOON)]);
        assert_eq!(amount.as_deref(), Some("0.2"));
        assert!(words.contains(" Other charges of the key fit as well (1)"), "{words}");
    }

    #[test]
    fn requests_that_share_an_entry_share_its_amount() {
        let (words, amount) = said(id(true), &[usage("-1", 4, NOON)]);
        assert_eq!(amount.as_deref(), Some("0.25"));
        assert!(words.starts_with("4 requests for GET /price/7 were charged together"), "{words}");
        assert!(words.contains(", 1 credit in all. This was one of them."), "{words}");
    }

    #[test]
    fn refund_is_mentioned() {
        let refund = entry(ActivityKind::UsageRefund, "0.2", 1, later(900));
        let (words, _) = said(id(true), &[refund, usage("-0.2", 1, NOON)]);
        assert!(words.contains(", 0.2 credits went back to the balance for the same path"), "{words}");
    }

    #[test]
    fn a_charge_that_is_not_found_was_refused_or_is_no_longer_kept() {
        let (words, amount) = said(id(false), &[]);
        assert!(words.starts_with("Nothing was charged to ") && amount.is_none(), "{words}");
        let full = vec![usage("-0.2", 1, later(60_000)); ACTIVITY_KEPT as usize];
        let (words, amount) = said(id(true), &full);
        assert!(words.contains("Its cost is no longer known") && amount.is_none(), "{words}");
    }
}
