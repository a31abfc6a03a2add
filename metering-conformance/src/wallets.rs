//! Contracts for wallets: each is the payer of at most one live account, and may be linked to several.

use std::sync::Arc;

use metering_core::access::{AccountId, Payer};
use metering_core::chains::Address;
use metering_core::payments::PaymentUse;
use metering_core::store::{Created, NewAccount, PaymentCredit, PaymentCredited, PaymentStore, Store};

use super::sale::{BONUS, buyer, credit, credited, payment_by, tx, wallet};
use super::scene::{BASE, NOON, adjustment, create, customer, new_account};

fn paid_by(number: u8, chain_id: u64) -> NewAccount {
    let payer = Some(Payer { address: wallet(number), chain_id });
    NewAccount { payer, entries: vec![adjustment(BONUS)], ..new_account() }
}

/// Credits a payment by wallet `wallet` with transaction `number`, and links the wallet.
async fn link(store: &dyn PaymentStore, account: &AccountId, wallet: u8, number: u8) {
    credited(store, PaymentCredit { link_payer: true, ..credit(account, payment_by(wallet, tx(number))) }).await;
}

async fn linked(store: &dyn PaymentStore, number: u8) -> Vec<AccountId> {
    store.linked_accounts(&wallet(number)).await.unwrap()
}

/// A wallet has one account, on any chain. A refusal for that leaves the id and the key free.
pub async fn payer_has_one_account_across_chains(store: Arc<dyn Store>) {
    create(&*store, paid_by(1, 8453)).await;
    for (chain_id, free) in [(8453, 2), (1, 3), (u64::MAX, 4)] {
        let new = paid_by(1, chain_id);
        assert_eq!(store.create_account(new.clone()).await.unwrap(), Created::PayerTaken, "{chain_id}");
        assert_eq!(store.account(&new.id).await.unwrap(), None, "{chain_id}");
        assert_eq!(store.account_by_key(&new.key).await.unwrap(), None, "{chain_id}");
        let payer = Some(Payer { address: wallet(free), chain_id });
        let made = create(&*store, NewAccount { payer, ..new.clone() }).await;
        assert_eq!((made.id, made.payer), (new.id, payer), "{chain_id}");
    }
    assert_eq!(store.ledger(None, 10).await.unwrap().items.len(), 4, "nothing was written for refused accounts");
}

/// Revoking an account frees its wallet, again and again.
pub async fn a_payer_is_free_again_after_revocation(store: Arc<dyn Store>) {
    for _ in 0..3 {
        let made = create(&*store, paid_by(1, 1)).await;
        assert_eq!(store.create_account(paid_by(1, 1)).await.unwrap(), Created::PayerTaken);
        store.revoke_account(&made.id, NOON).await.unwrap();
    }
    let accounts = store.accounts(None, 10).await.unwrap().items;
    assert_eq!(accounts.len(), 3);
    let payer = Some(Payer { address: wallet(1), chain_id: 1 });
    assert!(accounts.iter().all(|account| account.payer == payer), "records are unchanged");
}

/// Accounts without a payer do not collide with each other.
pub async fn accounts_without_payer_do_not_collide(store: Arc<dyn PaymentStore>) {
    for _ in 0..3 {
        create(&*store, new_account()).await;
    }
    assert_eq!(store.account_by_payer(&Address::ZERO).await.unwrap(), None);
    assert_eq!(store.accounts(None, 10).await.unwrap().items.len(), 3);
}

/// A live account is found by the wallet that paid for it, and by no other wallet.
pub async fn an_account_is_found_by_its_payer(store: Arc<dyn PaymentStore>) {
    let by = async |number: u8| store.account_by_payer(&wallet(number)).await.unwrap();
    let first = create(&*store, paid_by(1, 1)).await;
    let second = buyer(&*store, 2).await;
    create(&*store, new_account()).await;
    assert_eq!((by(1).await, by(2).await), (Some(first.clone()), Some(second.clone())));
    link(&*store, &first.id, 3, 3).await;
    assert_eq!((by(0).await, by(3).await), (None, None), "a linked wallet is not a payer");
    store.revoke_account(&first.id, NOON).await.unwrap();
    assert_eq!((by(1).await, by(2).await), (None, Some(second)));
    let next = create(&*store, paid_by(1, 8453)).await;
    assert_eq!(by(1).await, Some(next));
}

/// A wallet is linked only by a credit with `link_payer`.
pub async fn wallet_is_linked_on_request(store: Arc<dyn PaymentStore>) {
    let (customer, buyer) = (customer(&*store, BASE).await, buyer(&*store, 1).await);
    assert_eq!(linked(&*store, 1).await, [], "paying for a signup does not link");
    credited(&*store, credit(&buyer.id, payment_by(2, tx(2)))).await;
    let assigned = PaymentCredit { used_as: PaymentUse::Assigned, ..credit(&customer.id, payment_by(2, tx(3))) };
    credited(&*store, assigned).await;
    assert_eq!(linked(&*store, 2).await, []);
    link(&*store, &customer.id, 2, 4).await;
    assert_eq!(linked(&*store, 2).await, std::slice::from_ref(&customer.id));
    assert_eq!(store.linked_wallets(&customer.id).await.unwrap(), [wallet(2)]);
    assert_eq!((linked(&*store, 1).await, linked(&*store, 3).await), (vec![], vec![]));
}

/// Each account linked to a wallet is listed once, ordered by its first link.
pub async fn links_are_listed_in_the_order_of_linking(store: Arc<dyn PaymentStore>) {
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(customer(&*store, BASE).await.id);
    }
    let mut number = 0;
    for (account, wallet) in [(2, 1), (0, 1), (0, 2), (3, 1), (2, 1), (1, 2), (0, 1)] {
        number += 1;
        link(&*store, &ids[account], wallet, number).await;
    }
    let expected = |numbers: &[usize]| numbers.iter().map(|number| ids[*number].clone()).collect::<Vec<_>>();
    assert_eq!(linked(&*store, 1).await, expected(&[2, 0, 3]));
    assert_eq!(linked(&*store, 2).await, expected(&[0, 1]));
    // A repeated credit adds no link, and a credit without a link removes none.
    let repeated = PaymentCredit { link_payer: true, ..credit(&ids[2], payment_by(3, tx(1))) };
    assert!(matches!(store.credit_payment(repeated).await.unwrap(), PaymentCredited::Repeated(..)));
    credited(&*store, credit(&ids[2], payment_by(1, tx(100)))).await;
    assert_eq!((linked(&*store, 1).await, linked(&*store, 3).await), (expected(&[2, 0, 3]), vec![]));
}

/// Revoked accounts are left out of a wallet's linked accounts.
pub async fn links_of_revoked_accounts_are_left_out(store: Arc<dyn PaymentStore>) {
    let mut ids = Vec::new();
    for number in 0..3 {
        ids.push(customer(&*store, BASE).await.id);
        link(&*store, &ids[usize::from(number)], 1, number).await;
    }
    store.revoke_account(&ids[1], NOON).await.unwrap();
    assert_eq!(linked(&*store, 1).await, [ids[0].clone(), ids[2].clone()]);
    store.revoke_account(&ids[0], NOON).await.unwrap();
    store.revoke_account(&ids[2], NOON).await.unwrap();
    assert_eq!(linked(&*store, 1).await, []);
}
