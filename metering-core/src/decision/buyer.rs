//! Changes the buyer of an account, and adds the buyer to a receipt without one.
//!
//! A receipt's contents never change: past purchases keep the details of their time. Until something is bought, a
//! change replaces the details, so an account has at most one record more than purchases.

use std::time::Duration;

use super::Decided;
use crate::access::account::AccountId;
use crate::clock::Timestamp;
use crate::payments::buyer::{Buyer, BuyerRecord};
use crate::store::ReceiptBuyerAdded;

/// The rows read before the details of a buyer change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuyerFacts {
    /// All records of the account, by time.
    pub records: Vec<BuyerRecord>,
    /// Whether the account bought anything since the newest details took effect.
    pub has_bought: bool,
}

/// The rows to write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BuyerChanges {
    /// Delete the record that begins then.
    pub deleted: Option<Timestamp>,
    /// Write these, each replacing the one that begins at the same time.
    pub written: Vec<BuyerRecord>,
}

/// Decides [`PaymentStore::set_buyer`](crate::PaymentStore::set_buyer).
#[must_use]
pub fn set_buyer(account: &AccountId, facts: BuyerFacts, buyer: Option<&Buyer>, now: Timestamp) -> BuyerChanges {
    // Clocks of other nodes may be ahead.
    let ended = facts.records.iter().map(|record| record.until.unwrap_or(record.since.saturating_add(MOMENT))).max();
    let now = ended.map_or(now, |ended| ended.max(now));
    let open = facts.records.into_iter().find(|record| record.until.is_none());
    if open.as_ref().map(|open| &open.buyer) == buyer {
        return BuyerChanges::default();
    }
    let mut changes = BuyerChanges::default();
    let mut since = now;
    match open {
        Some(open) if facts.has_bought => changes.written.push(BuyerRecord { until: Some(now), ..open }),
        Some(open) if buyer.is_some() => since = open.since,
        Some(open) => changes.deleted = Some(open.since),
        None => {}
    }
    let new = buyer.map(|buyer| BuyerRecord { account: account.clone(), since, until: None, buyer: buyer.clone() });
    changes.written.extend(new);
    changes
}

/// How long the details hold that were added to one receipt: times have milliseconds.
const MOMENT: Duration = Duration::from_millis(1);

/// Decides [`PaymentStore::add_receipt_buyer`](crate::PaymentStore::add_receipt_buyer), and returns the record to write.
///
/// Refused, in this order:
/// - [`ReceiptBuyerAdded::NoBuyer`] when the account has no details now;
/// - [`ReceiptBuyerAdded::Added`] when the receipt has exactly these;
/// - [`ReceiptBuyerAdded::Taken`] when it has others.
#[must_use]
pub fn add_receipt_buyer(records: &[BuyerRecord], bought_at: Timestamp) -> Decided<BuyerRecord, ReceiptBuyerAdded> {
    let Some(current) = records.iter().find(|record| record.until.is_none()) else {
        return Decided::Refused(ReceiptBuyerAdded::NoBuyer);
    };
    match records.iter().find(|record| record.covers(bought_at)) {
        Some(own) if own.buyer == current.buyer => Decided::Refused(ReceiptBuyerAdded::Added),
        Some(_) => Decided::Refused(ReceiptBuyerAdded::Taken),
        None => {
            let until = Some(bought_at.saturating_add(MOMENT));
            Decided::Accepted(BuyerRecord { since: bought_at, until, ..current.clone() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_unix_millis(millis)
    }

    fn account() -> AccountId {
        "org_xxxxxxxxxxxxxxxxxxxx".parse().unwrap()
    }

    fn buyer(name: &str) -> Buyer {
        Buyer::new::<&str>(name, &[], None).unwrap()
    }

    fn record(name: &str, since: i64, until: Option<i64>) -> BuyerRecord {
        BuyerRecord { account: account(), since: at(since), until: until.map(at), buyer: buyer(name) }
    }

    fn set(records: &[BuyerRecord], has_bought: bool, name: Option<&str>, now: i64) -> BuyerChanges {
        let facts = BuyerFacts { records: records.to_vec(), has_bought };
        set_buyer(&account(), facts, name.map(buyer).as_ref(), at(now))
    }

    fn written(records: &[BuyerRecord]) -> BuyerChanges {
        BuyerChanges { deleted: None, written: records.to_vec() }
    }

    #[test]
    fn purchases_keep_the_details_of_their_time() {
        let open = [record("a", 10, None)];
        assert_eq!(set(&[], false, Some("a"), 10), written(&open));
        assert_eq!(set(&open, true, Some("b"), 20), written(&[record("a", 10, Some(20)), record("b", 20, None)]));
        assert_eq!(set(&open, true, None, 20), written(&[record("a", 10, Some(20))]));
        for has_bought in [false, true] {
            assert_eq!(set(&open, has_bought, Some("a"), 20), written(&[]), "nothing changed");
            assert_eq!(set(&[], has_bought, None, 20), written(&[]));
        }
    }

    #[test]
    fn before_a_purchase_details_are_replaced() {
        let open = [record("a", 10, None)];
        assert_eq!(set(&open, false, Some("b"), 20), written(&[record("b", 10, None)]));
        assert_eq!(set(&open, false, None, 20), BuyerChanges { deleted: Some(at(10)), written: Vec::new() });
    }

    #[test]
    fn details_never_overlap_even_if_a_clock_is_behind() {
        let closed = [record("a", 10, Some(30))];
        assert_eq!(set(&closed, true, Some("b"), 20), written(&[record("b", 30, None)]));
        let open = [record("a", 30, None)];
        assert_eq!(set(&open, true, None, 20), written(&[record("a", 30, Some(31))]));
    }

    #[test]
    fn a_receipt_gets_details_once() {
        use ReceiptBuyerAdded::{Added, NoBuyer, Taken};
        let records = [record("old", 10, Some(20)), record("now", 30, None)];
        assert_eq!(add_receipt_buyer(&records, at(5)), Decided::Accepted(record("now", 5, Some(6))));
        assert_eq!(add_receipt_buyer(&records, at(15)), Decided::Refused(Taken));
        assert_eq!(add_receipt_buyer(&records, at(30)), Decided::Refused(Added));
        assert_eq!(
            add_receipt_buyer(&[record("now", 5, Some(6)), record("now", 30, None)], at(5)),
            Decided::Refused(Added)
        );
        assert_eq!(add_receipt_buyer(&records[..1], at(5)), Decided::Refused(NoBuyer));
    }
}
