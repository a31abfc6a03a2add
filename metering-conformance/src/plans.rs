//! Contracts for plans: stored as given, listed in order, and replaced as a whole.

use std::sync::Arc;

use metering_core::chains::Address;
use metering_core::money::ATOMS_PER_CREDIT;
use metering_core::payments::{PaymentKind, Plan, PlanKey, TokenAmount};
use metering_core::store::PaymentStore;

use super::scene::atoms;

/// The smallest amount of credits that a plan can have.
const HUNDRED_MILLIONTH: i64 = ATOMS_PER_CREDIT / 100_000_000;

fn plan(id: &str, chain_id: u64, sort_order: i32) -> Plan {
    Plan {
        id: id.to_owned(),
        chain_id,
        token_symbol: "USDC".to_owned(),
        payment_kind: PaymentKind::Erc20,
        credits: atoms(HUNDRED_MILLIONTH),
        bonus_credits: atoms(0),
        token_amount: TokenAmount::parse("5").unwrap(),
        token_contract: Address::from_bytes([7; 20]),
        token_decimals: 6,
        label: "Starter".to_owned(),
        description: String::new(),
        offer: None,
        discount_percent: None,
        active: true,
        recipient: None,
        sort_order,
    }
}

fn key(id: &str, chain_id: u64) -> PlanKey {
    PlanKey { id: id.to_owned(), chain_id }
}

/// Every field is stored as given.
pub async fn plans_are_stored_unchanged(store: Arc<dyn PaymentStore>) {
    assert_eq!(store.plans().await.unwrap(), []);
    let bare = plan("bare", 1, 0);
    let full = Plan {
        token_symbol: "ETH".to_owned(),
        payment_kind: PaymentKind::NativeValue,
        credits: atoms(i64::MAX / HUNDRED_MILLIONTH * HUNDRED_MILLIONTH - 3 * HUNDRED_MILLIONTH),
        bonus_credits: atoms(3 * HUNDRED_MILLIONTH),
        token_amount: TokenAmount::parse("123456789.000000000000000001").unwrap(),
        token_contract: Address::ZERO,
        token_decimals: 18,
        label: "“Größe M”; it's".to_owned(),
        description: "Two\nlines".to_owned(),
        offer: Some("Spring".to_owned()),
        discount_percent: Some(99),
        active: false,
        recipient: Some(Address::from_bytes([0xFE; 20])),
        ..plan("full", u64::from(u32::MAX) + 1, i32::MAX)
    };
    assert_eq!((bare.validate(), full.validate()), (Ok(()), Ok(())), "stores only get valid plans");
    store.put_plans(vec![full.clone(), bare.clone()]).await.unwrap();
    assert_eq!(store.plans().await.unwrap(), [bare, full]);
}

/// Plans are listed by sort order, then chain, then id.
pub async fn plans_are_listed_in_order(store: Arc<dyn PaymentStore>) {
    let ordered = [
        plan("z", 9, i32::MIN),
        plan("m", 1, -1),
        plan("B", 2, 0),
        plan("a", 2, 0),
        plan("b", 2, 0),
        plan("a", 10, 0),
        plan("a", 1, 1),
    ];
    let mut shuffled = ordered.to_vec();
    shuffled.reverse();
    shuffled.swap(0, 3);
    store.put_plans(shuffled).await.unwrap();
    assert_eq!(store.plans().await.unwrap(), ordered);
}

/// Putting a plan with the same key replaces the whole plan; of two in one call, the later one wins.
pub async fn a_plan_of_the_same_key_is_replaced(store: Arc<dyn PaymentStore>) {
    let first = Plan { offer: Some("Spring".to_owned()), ..plan("a", 1, 5) };
    store.put_plans(vec![first, plan("a", 2, 0)]).await.unwrap();
    let changed = Plan { credits: atoms(99 * HUNDRED_MILLIONTH), active: false, ..plan("a", 1, -5) };
    store.put_plans(vec![plan("a", 1, 7), changed.clone()]).await.unwrap();
    assert_eq!(store.plans().await.unwrap(), [changed, plan("a", 2, 0)]);
    store.put_plans(Vec::new()).await.unwrap();
    assert_eq!(store.plans().await.unwrap().len(), 2);
}

/// A plan is removed by its complete key, once.
pub async fn a_plan_is_removed_once(store: Arc<dyn PaymentStore>) {
    store.put_plans(vec![plan("a", 1, 0), plan("a", 2, 0), plan("b", 1, 0)]).await.unwrap();
    assert!(store.remove_plan(&key("a", 1)).await.unwrap());
    assert!(!store.remove_plan(&key("a", 1)).await.unwrap());
    assert!(!store.remove_plan(&key("A", 2)).await.unwrap());
    assert!(!store.remove_plan(&key("c", 1)).await.unwrap());
    assert_eq!(store.plans().await.unwrap(), [plan("b", 1, 0), plan("a", 2, 0)]);
}

/// A plan is put on sale and taken off sale, and none of its other fields change.
pub async fn a_plan_is_put_on_sale_and_taken_off(store: Arc<dyn PaymentStore>) {
    store.put_plans(vec![plan("a", 1, 0), plan("a", 2, 1)]).await.unwrap();
    for active in [false, false, true, true, false] {
        assert!(store.set_plan_active(&key("a", 1), active).await.unwrap());
        assert_eq!(store.plans().await.unwrap(), [Plan { active, ..plan("a", 1, 0) }, plan("a", 2, 1)]);
    }
    assert!(!store.set_plan_active(&key("b", 1), false).await.unwrap());
    assert_eq!(store.plans().await.unwrap().len(), 2);
}
