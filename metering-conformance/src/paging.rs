//! Contracts for paging: with any page size and any writes between pages, no item is left out or listed twice.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use metering_core::store::{Cursor, NewAccount, Page, PaymentStore, Store, StoreError};

use super::sale::{claim, claimed, credit, credited, open, payment_by, quote, tx};
use super::scene::{BASE, DAY, NOON, adjustment, charge_on, commit, create, customer, line, new_account, paged, post};

/// Reads a whole list in pages of at most `$limit` items, and runs a block between pages.
macro_rules! pages {
    ($store:expr, $list:ident, $limit:expr $(, $between:expr)?) => {{
        let mut pages = Vec::new();
        let mut after: Option<Cursor> = None;
        loop {
            let Page { items, next } = $store.$list(after.as_ref(), $limit).await.unwrap();
            assert!(items.len() <= $limit as usize, "no page is longer than the limit");
            assert!(!items.is_empty() || after.is_none(), "a cursor leads to a page with items");
            assert!(pages.len() < 10_000, "the cursors end");
            pages.extend(items);
            $($between;)?
            match next {
                Some(next) => after = Some(next),
                None => break pages,
            }
        }
    }};
}

/// Texts that no store issues as cursors.
const NOT_CURSORS: [&str; 5] = ["", "no cursor", "1x", "💥", "'; --"];
const SIZES: [u32; 8] = [1, 2, 3, 4, 7, 11, 12, 1_000];

fn assert_same<T: PartialEq + Debug>(pages: &[T], full: &[T], size: u32) {
    assert_eq!(pages, full, "pages of {size}");
}

/// An empty list is one empty page.
pub async fn an_empty_list_is_one_empty_page(store: Arc<dyn Store>) {
    assert_eq!(store.accounts(None, 5).await.unwrap(), Page { items: Vec::new(), next: None });
    assert_eq!(store.ledger(None, 5).await.unwrap(), Page { items: Vec::new(), next: None });
    assert_eq!(store.daily_totals(None, 5).await.unwrap(), Page { items: Vec::new(), next: None });
}

/// Without payments, their list is one empty page.
pub async fn an_empty_list_of_payments_is_one_empty_page(store: Arc<dyn PaymentStore>) {
    assert_eq!(store.payments(None, 5).await.unwrap(), Page { items: Vec::new(), next: None });
}

/// Accounts are listed in the order of creation, not of their times or ids.
pub async fn accounts_are_paged_by_creation(store: Arc<dyn Store>) {
    let mut ids = Vec::new();
    for n in 0..12_u32 {
        let created_at = NOON.saturating_sub(Duration::from_secs(u64::from(n * 7 % 5)));
        ids.push(create(&*store, NewAccount { created_at, ..new_account() }).await.id);
    }
    let full = store.accounts(None, 1_000).await.unwrap();
    assert_eq!(full.next, None);
    assert!(full.items.iter().map(|account| &account.id).eq(&ids));
    for size in SIZES {
        assert_same(&pages!(store, accounts, size), &full.items, size);
    }
}

/// Ledger entries of all accounts are listed in the order of writing.
pub async fn ledger_is_paged_in_write_order(store: Arc<dyn Store>) {
    let (first, second) = (customer(&*store, 1).await, customer(&*store, 1).await);
    for n in 0..10_u32 {
        let id = if n % 3 == 0 { &first.id } else { &second.id };
        let at = NOON.saturating_sub(Duration::from_secs(u64::from(n * 7 % 5)));
        post(&*store, id, adjustment(i64::from(n)), at).await;
    }
    let full = store.ledger(None, 1_000).await.unwrap();
    assert_eq!((full.items.len(), &full.next), (12, &None));
    assert!(full.items[2..].iter().map(|entry| entry.amount.atoms()).eq(0..10));
    for size in SIZES {
        assert_same(&pages!(store, ledger, size), &full.items, size);
    }
}

/// An account's ledger has its own entries only, in the order of writing. Any entry's number can be a cursor.
pub async fn an_accounts_ledger_is_paged_in_write_order(store: Arc<dyn Store>) {
    let (first, second) = (customer(&*store, 1).await, customer(&*store, 1).await);
    for n in 0..24_u32 {
        let id = if n % 2 == 0 { &first.id } else { &second.id };
        post(&*store, id, adjustment(i64::from(n)), NOON).await;
    }
    let full = store.account_ledger(&first.id, None, 1_000).await.unwrap();
    assert_eq!((full.items.len(), &full.next), (13, &None));
    let all = store.ledger(None, 1_000).await.unwrap().items;
    assert!(all.iter().filter(|entry| entry.account == first.id).eq(&full.items));
    for size in SIZES {
        let listed = paged(size, async |after, size| store.account_ledger(&first.id, after, size).await).await;
        assert_same(&listed, &full.items, size);
    }
    for entry in &all {
        let after = Cursor::new(entry.id.to_string());
        let page = store.account_ledger(&first.id, Some(&after), 1_000).await.unwrap();
        assert!(page.items.iter().eq(full.items.iter().filter(|later| later.id > entry.id)), "after {}", entry.id);
    }
    let none = Page { items: Vec::new(), next: None };
    assert_eq!(store.account_ledger(&super::scene::new_id(), None, 5).await.unwrap(), none);
    for text in NOT_CURSORS {
        assert!(store.account_ledger(&first.id, Some(&Cursor::new(text)), 5).await.is_err(), "{text:?}");
    }
}

/// Daily totals of all accounts are listed in ascending order of days, and within a day in a stable order.
pub async fn daily_totals_are_paged_by_ascending_day(store: Arc<dyn Store>) {
    let (first, second) = (customer(&*store, 1_000 * BASE).await, customer(&*store, 1_000 * BASE).await);
    for day in [2, 0, 1] {
        let at = NOON.saturating_add(DAY * day);
        let batch = [(&first, "/a b"), (&second, "/a b"), (&first, "/ä/{x}"), (&second, "/\"'%")];
        let charges = batch.map(|(customer, template)| charge_on(customer.key, BASE, line(template)));
        commit(&*store, charges.to_vec(), at).await;
    }
    let full = store.daily_totals(None, 1_000).await.unwrap();
    assert_eq!((full.items.len(), &full.next), (12, &None));
    assert!(full.items.windows(2).all(|pair| pair[0].day <= pair[1].day));
    for size in SIZES {
        assert_same(&pages!(store, daily_totals, size), &full.items, size);
    }
}

/// Records of claims and top-ups are listed in the order of writing; those written between pages come last.
pub async fn payments_are_paged_in_write_order(store: Arc<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    let top_up = |number: u8| credit(&customer.id, payment_by(number, tx(number)));
    for number in (1..=12_u8).rev() {
        if number % 3 == 0 {
            let quote = open(&*store, quote(number)).await;
            claimed(&*store, claim(&quote, tx(number))).await;
        } else {
            credited(&*store, top_up(number)).await;
        }
    }
    let full = store.payments(None, 1_000).await.unwrap();
    assert_eq!(full.next, None);
    assert!(full.items.iter().map(|record| record.payment.tx).eq((1..=12).rev().map(tx)));
    for size in SIZES {
        assert_same(&pages!(store, payments, size), &full.items, size);
    }
    let mut written = 100;
    let paged = pages!(
        store,
        payments,
        2,
        if written < 104 {
            credited(&*store, top_up(written)).await;
            written += 1;
        }
    );
    assert_eq!(paged[..12], full.items);
    assert!(paged[12..].iter().map(|record| record.payment.tx).eq((100..104).map(tx)));
}

/// Items created between pages do not move others: all earlier items are listed once, in order.
pub async fn items_added_between_pages_shift_nothing(store: Arc<dyn Store>) {
    let old = customer(&*store, 1_000 * BASE).await;
    for n in 0..5 {
        create(&*store, NewAccount { entries: vec![adjustment(n)], ..new_account() }).await;
        let at = NOON.saturating_add(DAY * u32::try_from(n).unwrap());
        commit(&*store, vec![charge_on(old.key, 1, line("/m"))], at).await;
    }
    let accounts = store.accounts(None, 1_000).await.unwrap().items;
    let ledger = store.ledger(None, 1_000).await.unwrap().items;
    let days: Vec<_> = store.daily_totals(None, 1_000).await.unwrap().items;

    let mut made = 0;
    let paged = pages!(
        store,
        accounts,
        2,
        if made < 4 {
            made += 1;
            create(&*store, NewAccount { created_at: NOON.saturating_sub(DAY), ..new_account() }).await;
        }
    );
    let ids =
        |accounts: &[metering_core::Account]| accounts.iter().map(|account| account.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&paged[..accounts.len()]), ids(&accounts));
    assert_eq!(paged.len(), accounts.len() + 4, "new accounts come last");

    let mut made = 0;
    let paged = pages!(
        store,
        ledger,
        2,
        if made < 4 {
            made += 1;
            post(&*store, &old.id, adjustment(1), NOON.saturating_sub(DAY)).await;
        }
    );
    assert_eq!(paged[..ledger.len()], ledger);
    assert_eq!(paged.len(), ledger.len() + 4, "new entries come last");

    let mut made = 0;
    let paged = pages!(
        store,
        daily_totals,
        2,
        if made < 4 {
            // Before, between and after the existing days.
            for day in 0..8 {
                let new_line = line(["/a", "/z", "/l", "/n"][made]);
                commit(&*store, vec![charge_on(old.key, 1, new_line)], NOON.saturating_add(DAY * day)).await;
            }
            made += 1;
        }
    );
    let kept = paged.iter().filter(|total| &*total.line.route_template == "/m").cloned().collect::<Vec<_>>();
    assert_eq!(kept, days);
    let mut rows: Vec<_> = paged.iter().map(|total| (total.day, &total.line)).collect();
    let listed = rows.len();
    rows.sort();
    rows.dedup();
    assert_eq!(rows.len(), listed, "no row is listed twice");
}

/// A cursor that the store did not issue is an error.
pub async fn invalid_cursor_is_an_error(store: Arc<dyn Store>) {
    customer(&*store, BASE).await;
    for text in NOT_CURSORS {
        let cursor = Cursor::new(text);
        assert!(matches!(store.accounts(Some(&cursor), 5).await, Err(StoreError::UnknownCursor)), "{text:?}");
        assert!(matches!(store.ledger(Some(&cursor), 5).await, Err(StoreError::UnknownCursor)), "{text:?}");
        assert!(matches!(store.daily_totals(Some(&cursor), 5).await, Err(StoreError::UnknownCursor)), "{text:?}");
    }
}

/// A cursor that the store did not issue is an error for payments too.
pub async fn invalid_cursor_of_payments_is_an_error(store: Arc<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    credited(&*store, credit(&customer.id, payment_by(1, tx(1)))).await;
    for text in NOT_CURSORS {
        assert!(
            matches!(store.payments(Some(&Cursor::new(text)), 5).await, Err(StoreError::UnknownCursor)),
            "{text:?}"
        );
    }
}
