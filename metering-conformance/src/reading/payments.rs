//! Compares everything that can be read about quotes, payments and challenges with the model.

use metering_core::clock::Timestamp;
use metering_core::payments::{Payment, Quote};
use metering_core::store::PaymentStore;

use super::super::model::{Model, Owner};
use super::super::operation::{CHAINS, HASHES, NONCES, TARGETS, WALLETS, chain, nonce, target};
use super::super::sale::{MOMENT, payment_of, tx_on, wallet};

/// Compares quotes, the payments that match them, payment records, wallets, challenges and scan marks. `quotes` are all
/// quotes ever stored.
pub(crate) async fn payments_agree(store: &dyn PaymentStore, model: &Model, quotes: &[Quote], now: Timestamp) {
    for quote in quotes {
        quote_agrees(store, model, quote, now).await;
    }
    let page = store.payments(None, u32::MAX).await.unwrap();
    assert_eq!(page.next, None, "there is no next page");
    let records = model.records();
    assert_eq!(page.items, records, "the records of payments");
    for hash in 0..HASHES {
        for chain_id in (0..TARGETS).map(|number| target(number).chain_id) {
            let tx = tx_on(chain_id, hash);
            let expected = records.iter().find(|record| record.payment.tx == tx);
            assert_eq!(store.payment(&tx).await.unwrap().as_ref(), expected, "the record of {tx}");
        }
    }
    for wallet in (0..WALLETS).map(wallet) {
        let payer = store.account_by_payer(&wallet).await.unwrap();
        assert_eq!(payer, model.payer(wallet).map(Owner::account), "the account that {wallet} paid for");
        assert_eq!(store.linked_accounts(&wallet).await.unwrap(), model.linked(wallet), "the accounts of {wallet}");
    }
    for nonce in (0..NONCES).map(nonce) {
        assert_eq!(store.challenge(&nonce).await.unwrap().as_ref(), model.challenge(&nonce), "{nonce}");
    }
    for chain in (0..CHAINS).map(chain) {
        assert_eq!(store.scan_mark(chain).await.unwrap(), model.scan_mark(chain), "the mark of chain {chain}");
        let targets = store.quoted_targets(chain).await.unwrap();
        assert_eq!(targets, model.quoted_targets(chain), "the payment targets of quotes on chain {chain}");
    }
}

async fn quote_agrees(store: &dyn PaymentStore, model: &Model, quote: &Quote, now: Timestamp) {
    let found = store.quote(&quote.nonce).await.unwrap();
    let expected = model.quote(&quote.nonce);
    assert_eq!(found, expected, "the quote");
    let email = |quote: Option<Quote>| quote?.email.map(|email| email.as_str().to_owned());
    assert_eq!(email(found), email(expected), "emails are stored as given");
    let (from, until) = (quote.honoured_from(), quote.honoured_until());
    for mined_at in [now, from.saturating_sub(MOMENT), from, until, until.saturating_add(MOMENT)] {
        let payment = Payment { mined_at, ..payment_of(quote, tx_on(quote.target.chain_id, 0xFF)) };
        let paid = store.quote_paid_by(&payment).await.unwrap();
        let waiting = model.quotes_paid_by(&payment);
        assert_eq!(paid.is_some(), !waiting.is_empty(), "whether a quote matches {payment:?}");
        assert!(paid.iter().all(|paid| waiting.contains(paid)), "{paid:?} is not among {waiting:?}");
    }
}
