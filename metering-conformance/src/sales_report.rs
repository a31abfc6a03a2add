//! Contracts for the sales in the report about the business: what was sold, through which payments.

use std::sync::Arc;

use metering_core::access::AccountId;
use metering_core::chains::{Address, Block, TokenUnits, TxRef};
use metering_core::clock::Timestamp;
use metering_core::money::{LedgerKind, PaymentRef};
use metering_core::operators::{DayRevenue, DaySales, DayValue, PlanSales};
use metering_core::payments::{Payment, PaymentUse, PaymentValue, SettlementStep, SoldPlan};
use metering_core::store::{FullStore, PaymentCredit, PaymentSettled, PaymentStore, SettlementChange};
use metering_core::usage::DayRange;

use super::operations::{TODAY, operations, quiet};
use super::sale::{
    BONUS, PLAN, SOLD, TARGET, buyer, credit, credited, payment_by, purchase, quote, sold, tx, tx_on, value,
};
use super::scene::{ALWAYS, BASE, DAY, NOON, adjustment, atoms, customer, entry, post};

/// The line that a purchase of a plan adds to a report, once for each number.
fn starter(numbers: &[u8]) -> PlanSales {
    let amount = numbers.iter().map(|number| quote(*number).amount.get()).sum();
    let count = u64::try_from(numbers.len()).unwrap();
    PlanSales {
        chain_id: TARGET.chain_id,
        plan_id: Some(PLAN.to_owned()),
        token: TARGET.token,
        unit: Some((sold().token_symbol, sold().token_decimals)),
        payments: count,
        amount: TokenUnits::new(amount),
        credits: atoms(SOLD * i64::try_from(count).unwrap()),
    }
}

async fn step(store: &dyn PaymentStore, tx: TxRef, step: SettlementStep, now: Timestamp) {
    let seen = store.payment(&tx).await.unwrap().expect("the payment is recorded");
    let settled = store.settle_payment(SettlementChange { seen, step, now }).await.unwrap();
    assert!(matches!(settled, PaymentSettled::Changed(_)), "{settled:?}");
}

/// Payments for plans are sold, free credits and adjustments are granted.
pub async fn purchases_are_sold_and_grants_are_not(store: Arc<dyn FullStore>) {
    let made = buyer(&*store, 1).await;
    credited(&*store, credit(&made.id, payment_by(2, tx(2)))).await;
    post(&*store, &made.id, adjustment(-3 * BASE), NOON).await;
    // By hand, without a payment.
    post(&*store, &made.id, entry(LedgerKind::PurchaseTopup, 7), NOON).await;
    let report = operations(&*store, TODAY).await;
    let (sold, granted) = (atoms(2 * SOLD + 7), atoms(BONUS - 3 * BASE));
    assert_eq!(report.by_day, [DaySales { new_accounts: 1, sold, granted, ..quiet(NOON.day()) }]);
    assert_eq!(report.sales, [starter(&[1, 2])]);
    assert_eq!((report.top_accounts.len(), report.top_routes.len()), (0, 0));
}

/// A reversal takes back the sale on its own day, and the payment is no longer listed. Once restored, it is again.
pub async fn a_reversed_payment_is_not_sold(store: Arc<dyn FullStore>) {
    let made = buyer(&*store, 1).await;
    credited(&*store, credit(&made.id, payment_by(2, tx(2)))).await;
    step(&*store, tx(2), SettlementStep::Reverse, NOON).await;
    let report = operations(&*store, TODAY).await;
    assert_eq!((report.by_day[0].sold, report.by_day[0].granted), (atoms(SOLD), atoms(BONUS)));
    assert_eq!(report.sales, [starter(&[1])]);

    let tomorrow = NOON.saturating_add(DAY);
    step(&*store, tx(1), SettlementStep::Reverse, tomorrow).await;
    let report = operations(&*store, ALWAYS).await;
    assert_eq!(report.by_day.iter().map(|day| day.sold).collect::<Vec<_>>(), [atoms(SOLD), atoms(-SOLD)]);
    assert_eq!(report.sales, []);

    let block = Block { number: 19, hash: [19; 32], time: NOON };
    step(&*store, tx(2), SettlementStep::Restore(block), tomorrow).await;
    let report = operations(&*store, ALWAYS).await;
    assert_eq!(report.by_day.iter().map(|day| day.sold).collect::<Vec<_>>(), [atoms(SOLD), atoms(0)]);
    assert_eq!(report.sales, [starter(&[2])], "with the credits of its purchase");
}

/// A payment for a plan, in a token of a chain, for some credits.
fn payment(
    account: &AccountId,
    tx: TxRef,
    (plan, token): (Option<&str>, Address),
    amount: u128,
    credits: i64,
) -> PaymentCredit {
    let plan_id = plan.map(str::to_owned);
    let payment = Payment { token, amount: TokenUnits::new(amount), ..payment_by(1, tx) };
    let mut entry = purchase(LedgerKind::PurchaseTopup, credits, tx);
    entry.payment = Some(PaymentRef { tx, plan_id });
    let used_as = if plan.is_some() { PaymentUse::Topup } else { PaymentUse::Assigned };
    PaymentCredit { entry, used_as, sold: plan.map(|_| sold()), ..credit(account, payment) }
}

/// Payments are added up by chain, plan and token, most credits first, and equal ones by chain, plan and token. The
/// newest sale names the token.
pub async fn sales_are_added_up_by_chain_plan_and_token(store: Arc<dyn FullStore>) {
    let id = customer(&*store, 0).await.id;
    let (coin, other) = (Address::ZERO, Address::from_bytes([0xE0; 20]));
    let huge = u128::from(u64::MAX) * 1_000;
    let table = [
        (tx(1), (Some("small"), TARGET.token), 1, 10),
        (tx(2), (Some("small"), TARGET.token), 2, 20),
        (tx(3), (Some("large"), TARGET.token), huge, 500),
        (tx(4), (Some("large"), TARGET.token), huge, 400),
        (tx(5), (Some("small"), other), 5, 30),
        (tx_on(1, 6), (Some("small"), TARGET.token), 6, 30),
        (tx_on(u64::MAX, 7), (Some("small"), coin), 7, 30),
        (tx(8), (None, TARGET.token), 8, 30),
    ];
    for (tx, what, amount, credits) in table {
        credited(&*store, payment(&id, tx, what, amount, credits)).await;
    }
    let renamed = SoldPlan { token_symbol: "EURC".to_owned(), token_decimals: 18, ..sold() };
    let newest = payment(&id, tx(9), (Some("large"), TARGET.token), 1, 100);
    credited(&*store, PaymentCredit { sold: Some(renamed), ..newest }).await;
    let sales = |(chain_id, plan, token): (u64, Option<&str>, Address), payments, amount, credits| PlanSales {
        chain_id,
        plan_id: plan.map(str::to_owned),
        token,
        unit: plan.map(|_| (sold().token_symbol, sold().token_decimals)),
        payments,
        amount: TokenUnits::new(amount),
        credits: atoms(credits),
    };
    let (chain, usual) = (TARGET.chain_id, TARGET.token);
    let expected = [
        PlanSales {
            unit: Some(("EURC".to_owned(), 18)),
            ..sales((chain, Some("large"), usual), 3, 2 * huge + 1, 1_000)
        },
        sales((1, Some("small"), usual), 1, 6, 30),
        sales((chain, None, usual), 1, 8, 30),
        sales((chain, Some("small"), usual), 2, 3, 30),
        sales((chain, Some("small"), other), 1, 5, 30),
        sales((u64::MAX, Some("small"), coin), 1, 7, 30),
    ];
    let report = operations(&*store, TODAY).await;
    assert_eq!(report.sales, expected);
    assert_eq!(report.by_day[0].sold, atoms(10 + 20 + 500 + 400 + 4 * 30 + 100));
}

/// Only payments that were recorded on the days asked are listed.
pub async fn sales_of_other_days_are_left_out(store: Arc<dyn FullStore>) {
    let id = customer(&*store, 0).await.id;
    for (number, now) in [(1, NOON.saturating_sub(DAY)), (2, NOON), (3, NOON.saturating_add(DAY))] {
        credited(&*store, PaymentCredit { now, ..credit(&id, payment_by(number, tx(number))) }).await;
    }
    let report = operations(&*store, TODAY).await;
    let sold = atoms(SOLD);
    assert_eq!(report.by_day, [DaySales { new_accounts: 1, sold, ..quiet(NOON.day()) }]);
    assert_eq!(report.sales, [starter(&[2])]);
    let until_today = DayRange { first: ALWAYS.first, last: NOON.day() };
    assert_eq!(operations(&*store, until_today).await.sales, [starter(&[1, 2])]);
    assert_eq!(operations(&*store, ALWAYS).await.sales, [starter(&[1, 2, 3])]);
}

/// Amounts paid are added up by day, chain and token, without payments that are now reversed.
pub async fn revenue_is_added_up_by_day(store: Arc<dyn FullStore>) {
    let id = customer(&*store, 0).await.id;
    let tomorrow = NOON.saturating_add(DAY);
    let table = [(NOON, tx(1)), (NOON, tx(2)), (NOON, tx_on(1, 3)), (tomorrow, tx(4)), (tomorrow, tx(5))];
    for (now, tx) in table {
        let number = tx.hash.as_bytes()[0];
        credited(&*store, PaymentCredit { now, ..credit(&id, payment_by(number, tx)) }).await;
    }
    step(&*store, tx(5), SettlementStep::Reverse, tomorrow).await;
    let revenue = |at: Timestamp, chain_id, numbers: &[u8]| DayRevenue {
        day: at.day(),
        chain_id,
        token: TARGET.token,
        unit: Some((sold().token_symbol, sold().token_decimals)),
        payments: u64::try_from(numbers.len()).unwrap(),
        amount: TokenUnits::new(numbers.iter().map(|number| quote(*number).amount.get()).sum()),
    };
    let chain = TARGET.chain_id;
    let expected = [revenue(NOON, 1, &[3]), revenue(NOON, chain, &[1, 2]), revenue(tomorrow, chain, &[4])];
    assert_eq!(operations(&*store, ALWAYS).await.revenue, expected);
    assert_eq!(operations(&*store, TODAY).await.revenue, expected[..2]);
}

/// Values of payments are added up by day and currency, without payments that are now reversed or have no value.
pub async fn values_are_added_up_by_day_and_currency(store: Arc<dyn FullStore>) {
    let id = customer(&*store, 0).await.id;
    let tomorrow = NOON.saturating_add(DAY);
    let [euro, yen] = ["EUR", "JPY"].map(|code| code.parse().unwrap());
    let in_yen = PaymentValue { currency: yen, ..value() };
    let unknown = PaymentValue { converted: None, ..value() };
    let table = [
        (NOON, 1, Some(value())),
        (NOON, 2, Some(in_yen)),
        (NOON, 3, Some(value())),
        (NOON, 4, Some(unknown)),
        (NOON, 5, None),
        (tomorrow, 6, Some(value())),
        (tomorrow, 7, Some(value())),
    ];
    for (now, number, value) in table {
        let credit = credit(&id, payment_by(number, tx(number)));
        credited(&*store, PaymentCredit { now, value, ..credit }).await;
    }
    step(&*store, tx(7), SettlementStep::Reverse, tomorrow).await;
    let worth = |at: Timestamp, currency, payments, amount: &str| {
        let (day, amount) = (at.day(), amount.parse().unwrap());
        DayValue { day, currency, payments, amount }
    };
    let expected = [worth(NOON, euro, 2, "8.60"), worth(NOON, yen, 1, "4.30"), worth(tomorrow, euro, 1, "4.30")];
    assert_eq!(operations(&*store, ALWAYS).await.values, expected);
}
