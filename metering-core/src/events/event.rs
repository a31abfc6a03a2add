//! Events: what happened to an account that its owner should hear about.
//!
//! An event is written in the transaction that causes it, so there is no change without its event, and no event of a
//! change that was rolled back.

use std::fmt;

use serde::Serialize;
use serde_json::value::RawValue;
use sha3::{Digest, Sha3_256};

use crate::access::account::AccountId;
use crate::clock::Timestamp;
use crate::events::event_data::{EventData, EventKind};

/// An event to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// The account of the event; `None` only for a test of the operator's webhook.
    pub account: Option<AccountId>,
    /// What happened.
    pub data: EventData,
    /// When.
    pub created_at: Timestamp,
}

impl NewEvent {
    /// What happened, as the JSON object that webhooks receive as `data`. It names the account as `org_id`.
    #[must_use]
    pub fn json(&self) -> String {
        #[derive(Serialize)]
        struct Named<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            org_id: Option<&'a AccountId>,
            #[serde(flatten)]
            data: &'a EventData,
        }
        let named = Named { org_id: self.account.as_ref(), data: &self.data };
        serde_json::to_string(&named).expect("events are valid JSON")
    }
}

/// The id of an event: `evt_` and 32 lower-case hex digits. Derived from the event's whole content, so two events never
/// share an id, even if a restored database reuses numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct EventId(String);

impl EventId {
    fn of(event: &Event) -> Self {
        let account = event.account.as_ref().map_or("operator", AccountId::as_str);
        let mut digest = Sha3_256::new()
            .chain_update(b"metering event id\0")
            .chain_update(event.number.to_be_bytes())
            .chain_update(event.created_at.unix_millis().to_be_bytes());
        for text in [account, event.kind.as_str(), &event.data] {
            digest.update(text.as_bytes());
            digest.update(b"\0");
        }
        let digest = digest.finalize();
        Self(format!("evt_{}", hex::encode(&digest[..16])))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number in the store. The later of two events of an account has the higher number.
    pub number: i64,
    /// The account of the event; `None` only for a test of the operator's webhook.
    pub account: Option<AccountId>,
    /// What happened.
    pub kind: EventKind,
    /// The subject and details: a JSON object ([`NewEvent::json`]).
    pub data: String,
    /// When.
    pub created_at: Timestamp,
}

impl Event {
    /// How long events and their deliveries are kept.
    pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 60 * 60);

    /// How many events of an account are kept. Older ones are deleted with their deliveries, sent or not, so a flood of
    /// changes does not fill the database.
    pub const MAX_PER_ACCOUNT: u32 = 10_000;

    /// Accounts without an event for this long are not checked for [`Event::MAX_PER_ACCOUNT`].
    pub const EXCESS_WINDOW: std::time::Duration = std::time::Duration::from_secs(10 * 60);

    /// The event with this number.
    #[must_use]
    pub fn of(new: &NewEvent, number: i64) -> Self {
        let NewEvent { account, data, created_at } = new;
        Self { number, account: account.clone(), kind: data.kind(), data: new.json(), created_at: *created_at }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> EventId {
        EventId::of(self)
    }

    /// The body of the requests that deliver it, as the specification recommends it: always the same bytes. `None` if its
    /// data is not JSON, which stores never hold.
    ///
    /// ```
    /// use metering_core::Timestamp;
    /// use metering_core::events::{Event, EventData, NewEvent};
    ///
    /// let new = NewEvent { account: None, data: EventData::TEST, created_at: Timestamp::from_unix_millis(0) };
    /// let body = Event::of(&new, 1).body().expect("an event has JSON");
    /// assert!(body.starts_with(r#"{"type":"webhook.test","timestamp":"1970-01-01T00:00:00.000Z","data":{"#), "{body}");
    /// ```
    #[must_use]
    pub fn body(&self) -> Option<String> {
        #[derive(Serialize)]
        struct Payload<'a> {
            #[serde(rename = "type")]
            kind: EventKind,
            timestamp: Timestamp,
            data: &'a RawValue,
        }
        let data: &RawValue = serde_json::from_str(&self.data).ok()?;
        serde_json::to_string(&Payload { kind: self.kind, timestamp: self.created_at, data }).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::budget::{Budget, BudgetReset};
    use crate::access::key_terms::KeyTerms;
    use crate::events::event_data::{BudgetEvent, KeyEvent};
    use crate::money::credits::Credits;

    const AT: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

    fn json(data: EventData) -> String {
        NewEvent { account: Some("org_xxxxxxxxxxxxxxxxxxxx".parse().unwrap()), data, created_at: AT }.json()
    }

    #[test]
    fn amounts_keep_every_digit() {
        let balance = Credits::from_atoms(1);
        let low = EventData::BalanceLow { balance, threshold: "5".parse().unwrap() };
        let expected = r#"{"org_id":"org_xxxxxxxxxxxxxxxxxxxx","balance":BALANCE,"threshold":5}"#;
        assert_eq!(json(low), expected.replace("BALANCE", &balance.to_string()));
    }

    #[test]
    fn a_budget_names_its_key() {
        let key = KeyEvent { key_id: "key_0123456789abcdef0123".parse().unwrap(), key_name: KeyTerms::first().name };
        let budget = Budget { limit: Credits::from_atoms(7), reset: Some(BudgetReset::Monthly) };
        let budget = BudgetEvent::new(key, &budget, Credits::ZERO, AT);
        let object: serde_json::Value = serde_json::from_str(&json(EventData::BudgetExhausted(budget))).unwrap();
        assert_eq!((&object["key_id"], &object["limit_remaining"]), (&"key_0123456789abcdef0123".into(), &0.into()));
        assert_eq!((&object["key_name"], &object["limit_reset"]), (&"First key".into(), &"monthly".into()));
    }

    #[test]
    fn a_test_of_the_operators_webhook_names_no_account() {
        let test = NewEvent { account: None, data: EventData::TEST, created_at: AT };
        assert_eq!(test.json(), r#"{"message":"This is a test. Nothing happened."}"#);
    }

    #[test]
    fn two_events_never_have_the_same_id() {
        let event = |account: &str, number, data, created_at| {
            Event::of(&NewEvent { account: account.parse().ok(), data, created_at }, number).id()
        };
        let exhausted = || EventData::BalanceExhausted { balance: Credits::ZERO, required: None };
        let (a, b) = ("org_xxxxxxxxxxxxxxxxxxxx", "org_yyyyyyyyyyyyyyyyyyyy");
        let id = event(a, 1, exhausted(), AT);
        assert_eq!((event(a, 1, exhausted(), AT), id.as_str().len()), (id.clone(), 36));
        let later = AT.saturating_add(std::time::Duration::from_millis(1));
        let others = [
            event(b, 1, exhausted(), AT),
            event("", 1, exhausted(), AT),
            event(a, 2, exhausted(), AT),
            event(a, 1, EventData::TEST, AT),
            event(a, 1, exhausted(), later),
        ];
        assert!(others.iter().all(|other| *other != id), "{others:?}");
    }
}
