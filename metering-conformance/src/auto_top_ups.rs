//! Contracts for automatic top-ups: a saved card is charged when the balance is low, once at a time, within the month's limit,
//! and no longer after a failure or a reversal.

use std::sync::Arc;
use std::time::Duration;

use metering_core::access::AccountId;
use metering_core::clock::Timestamp;
use metering_core::events::EventKind::{PaymentCredited, PaymentReversed, TopUpStopped};
use metering_core::payments::{
    AutoTopUp, ProcessorRef, SavedCard, TopUpCharge, TopUpChargeId, TopUpChargeState, TopUpRule, TopUpStop,
};
use metering_core::random::SystemRandomness;
use metering_core::store::{AutoTopUpChange, AutoTopUpSet, FullStore, PaymentStore, ReversalChange, TopUpEnd};

use super::event_scene::reported;
use super::processors;
use super::sale::after;
use super::scene::{BASE, MINUTE, NOON, accepted, adjustment, atoms, charge, customer, new_id, paged, post, racing};

/// The price of a top-up, in cents.
const PRICE: u64 = 1_000;

fn card(number: &str) -> SavedCard {
    let [customer, method, brand] = ["cus_é", "pm_1", "visa"].map(str::to_owned);
    SavedCard { customer, method, brand, last4: number.to_owned() }
}

/// A purchase below two base calls, twice a month.
fn rule() -> TopUpRule {
    TopUpRule {
        plan_id: "starter".to_owned(),
        credits: atoms(100 * BASE),
        amount: PRICE,
        currency: "EUR".parse().unwrap(),
        threshold: atoms(2 * BASE),
        monthly_limit: 2 * PRICE + 1,
    }
}

async fn set(store: &dyn PaymentStore, id: &AccountId, change: AutoTopUpChange) -> AutoTopUp {
    match store.set_auto_top_up(id, change).await.unwrap() {
        AutoTopUpSet::Set(settings) => *settings,
        refusal => panic!("it was not set: {refusal:?}"),
    }
}

pub(super) async fn turn_on(store: &dyn PaymentStore, id: &AccountId) -> AutoTopUp {
    set(store, id, AutoTopUpChange::Card(Some(card("4242")))).await;
    set(store, id, AutoTopUpChange::Rule(Some(rule()))).await
}

pub(super) async fn begin(store: &dyn PaymentStore, id: &AccountId, now: Timestamp) -> Option<TopUpCharge> {
    store.begin_top_up(id, TopUpChargeId::generate(&SystemRandomness), now).await.unwrap()
}

pub(super) fn payment(id: &str) -> ProcessorRef {
    ProcessorRef::new("stripe", id).unwrap()
}

/// All accounts that are due, from pages of one.
async fn due(store: &dyn PaymentStore) -> Vec<AccountId> {
    let found = paged(1, async |after, limit| store.due_top_ups(after, limit).await).await;
    found.into_iter().map(|settings| settings.account).collect()
}

/// A card and a rule are stored as given. A rule needs a card.
pub async fn saved_cards_are_stored_unchanged(store: Arc<dyn PaymentStore>) {
    let (owner, other) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    assert_eq!(store.auto_top_up(&owner.id).await.unwrap(), None);
    let refused = store.set_auto_top_up(&owner.id, AutoTopUpChange::Rule(Some(rule()))).await.unwrap();
    assert_eq!(refused, AutoTopUpSet::NoCard);
    let expected = AutoTopUp { card: Some(card("4242")), rule: Some(rule()), ..AutoTopUp::none(owner.id.clone()) };
    assert_eq!(turn_on(&*store, &owner.id).await, expected);
    assert_eq!(store.auto_top_up(&owner.id).await.unwrap(), Some(expected.clone()));
    let replaced = set(&*store, &owner.id, AutoTopUpChange::Card(Some(card("0005")))).await;
    assert_eq!(replaced, AutoTopUp { card: Some(card("0005")), ..expected });
    set(&*store, &owner.id, AutoTopUpChange::Card(None)).await;
    assert_eq!(store.auto_top_up(&owner.id).await.unwrap(), Some(AutoTopUp::none(owner.id)));
    assert_eq!(store.auto_top_up(&other.id).await.unwrap(), None);
    let unknown = store.set_auto_top_up(&new_id(), AutoTopUpChange::Card(None)).await.unwrap();
    assert_eq!(unknown, AutoTopUpSet::NoSuchAccount);
}

/// Accounts are due when their balance is low, as soon as the charge that made it low is committed.
pub async fn accounts_with_a_low_balance_are_due(store: Arc<dyn PaymentStore>) {
    let [first, second, off] =
        [customer(&*store, 3 * BASE).await, customer(&*store, BASE).await, customer(&*store, BASE).await];
    for owner in [&first, &second] {
        turn_on(&*store, &owner.id).await;
    }
    set(&*store, &off.id, AutoTopUpChange::Card(Some(card("4242")))).await;
    assert_eq!(due(&*store).await, std::slice::from_ref(&second.id));
    accepted(&*store, charge(first.key, 2 * BASE), NOON).await;
    assert_eq!(due(&*store).await, [first.id.clone(), second.id.clone()]);
    post(&*store, &second.id, adjustment(BASE), NOON).await;
    assert_eq!(due(&*store).await, std::slice::from_ref(&first.id));
    store.revoke_account(&first.id, NOON).await.unwrap();
    assert_eq!(due(&*store).await, []);
}

/// Of many concurrent attempts one makes a charge, and no other is made before it has ended.
pub async fn concurrent_top_ups_charge_once(store: Arc<dyn PaymentStore>) {
    let owner = customer(&*store, BASE).await;
    turn_on(&*store, &owner.id).await;
    let results = racing(&store, 0..8, |store, _| {
        let id = owner.id.clone();
        async move { begin(&*store, &id, NOON).await }
    })
    .await;
    let begun: Vec<TopUpCharge> = results.into_iter().flatten().collect();
    let [charge] = &begun[..] else { panic!("{begun:?}") };
    assert_eq!((charge.card.clone(), charge.amount, charge.state), (card("4242"), PRICE, TopUpChargeState::Open));
    assert_eq!(store.open_top_ups(10).await.unwrap(), begun);
    assert!(store.end_top_up(charge.id, TopUpEnd::NeverMade, NOON).await.unwrap());
    assert!(!store.end_top_up(charge.id, TopUpEnd::NeverMade, NOON).await.unwrap());
    assert_eq!(store.open_top_ups(10).await.unwrap(), []);
    assert!(begin(&*store, &owner.id, NOON).await.is_some(), "the first one was never made");
}

/// The charges of a calendar month stay within the limit. Charges that failed do not count.
pub async fn top_ups_are_within_the_limit_of_the_month(store: Arc<dyn PaymentStore>) {
    let owner = customer(&*store, BASE).await;
    turn_on(&*store, &owner.id).await;
    for number in 0..2 {
        let never = begin(&*store, &owner.id, NOON).await.expect("it is within the limit");
        store.end_top_up(never.id, TopUpEnd::NeverMade, NOON).await.unwrap();
        let made = begin(&*store, &owner.id, NOON).await.expect("it is within the limit");
        store.end_top_up(made.id, TopUpEnd::Paid(payment(&format!("pi_{number}"))), NOON).await.unwrap();
    }
    assert_eq!(begin(&*store, &owner.id, NOON).await, None);
    let charges = store.top_up_charges(&owner.id, NOON).await.unwrap();
    let paid: Vec<_> = charges.iter().map(|charge| charge.payment).collect();
    let mut expected = ["pi_0", "pi_1"].map(|id| Some(payment(id).tx().hash)).to_vec();
    // They have the same time.
    expected.sort();
    let mut sorted = paid;
    sorted.sort();
    assert_eq!(sorted, expected);
    let next_month = NOON.day().month().next().start();
    assert_eq!(begin(&*store, &owner.id, next_month.saturating_sub(Duration::from_millis(1))).await, None);
    assert!(begin(&*store, &owner.id, next_month).await.is_some());
    assert_eq!(store.top_up_charges(&owner.id, next_month).await.unwrap().len(), 1);
}

/// A failure stops automatic top-ups and is reported once. They continue when their owner turns them on again.
pub async fn a_failed_top_up_is_told_and_not_repeated(store: Arc<dyn FullStore>) {
    let owner = customer(&*store, BASE).await;
    turn_on(&*store, &owner.id).await;
    let charge = begin(&*store, &owner.id, NOON).await.expect("it is due");
    assert!(store.end_top_up(charge.id, TopUpEnd::Failed(TopUpStop::Declined), NOON).await.unwrap());
    assert!(!store.end_top_up(charge.id, TopUpEnd::Failed(TopUpStop::Refused), NOON).await.unwrap());
    assert_eq!(store.auto_top_up(&owner.id).await.unwrap().unwrap().stopped, Some(TopUpStop::Declined));
    assert_eq!((due(&*store).await, begin(&*store, &owner.id, NOON).await), (Vec::new(), None));
    store.stop_top_ups(&owner.id, TopUpStop::PlanChanged, NOON).await.unwrap();
    assert_eq!(reported(&*store, &owner.id).await, [TopUpStopped]);
    assert_eq!(turn_on(&*store, &owner.id).await.stopped, None);
    assert!(begin(&*store, &owner.id, NOON).await.is_some());
    // The processor's report may arrive late.
    assert!(store.end_top_up(charge.id, TopUpEnd::Paid(payment("pi_1")), NOON).await.unwrap());
}

/// The reversal of a payment with a saved card stops automatic top-ups, even if it was recorded before the charge ended.
pub async fn a_reversed_top_up_stops_them(store: Arc<dyn FullStore>) {
    for is_early in [false, true] {
        let owner = customer(&*store, BASE).await;
        turn_on(&*store, &owner.id).await;
        let charge = begin(&*store, &owner.id, NOON).await.expect("it is due");
        let id = format!("pi_{is_early}");
        processors::credited(&*store, &owner.id, &id).await;
        let end = TopUpEnd::Paid(payment(&id));
        if !is_early {
            assert!(store.end_top_up(charge.id, end.clone(), NOON).await.unwrap());
        }
        let (reversal, payment) = (payment(&format!("re_{is_early}")), payment(&id));
        let (amount, reason, now) = (None, "asked".to_owned(), after(MINUTE));
        let change = ReversalChange { reversal, payment, amount, reason, restored: false, again: false, now };
        store.reverse_processor_payment(change).await.unwrap();
        if is_early {
            assert!(store.end_top_up(charge.id, end, NOON).await.unwrap());
        }
        assert_eq!(store.auto_top_up(&owner.id).await.unwrap().unwrap().stopped, Some(TopUpStop::Reversed));
        assert_eq!(reported(&*store, &owner.id).await, [PaymentCredited, PaymentReversed, TopUpStopped]);
    }
}

/// The reversal of a payment that was not an automatic top-up stops them too: the card would be charged for what was taken back.
/// One that had ended before it was recorded does not.
pub async fn any_reversed_payment_stops_them(store: Arc<dyn FullStore>) {
    let owner = customer(&*store, BASE).await;
    processors::credited(&*store, &owner.id, "pi_1").await;
    turn_on(&*store, &owner.id).await;
    let stopped = async || store.auto_top_up(&owner.id).await.unwrap().unwrap().stopped;
    for (id, restored, expected) in [("dp_1", true, None), ("re_1", false, Some(TopUpStop::Reversed))] {
        let (reversal, payment, reason) = (payment(id), payment("pi_1"), "asked".to_owned());
        let (amount, again, now) = (None, false, after(MINUTE));
        let change = ReversalChange { reversal, payment, amount, reason, restored, again, now };
        store.reverse_processor_payment(change).await.unwrap();
        assert_eq!(stopped().await, expected, "{id}");
    }
    assert_eq!((due(&*store).await, begin(&*store, &owner.id, after(MINUTE)).await), (Vec::new(), None));
    assert_eq!(reported(&*store, &owner.id).await, [PaymentCredited, PaymentReversed, TopUpStopped]);
}
