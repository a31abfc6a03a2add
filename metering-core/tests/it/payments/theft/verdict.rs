//! The conditions that must be true at the end of the theft game.

use std::collections::{HashMap, HashSet};

use metering_core::chains::{TxHash, TxRef};
use metering_core::payments::{QuoteNonce, QuoteState};
use metering_core::wire::QuoteResponse;
use metering_core::{AccountId, ApiKey, Credits, PaymentStore, Store};

use super::super::scene::{MAIN, SIDE, key_of};
use super::super::wallet::Wallet;
use super::simulation::{BoughtQuote, ROUTER, Simulation};

/// The credits of the plan `starter`.
fn starter() -> Credits {
    "10.5".parse().unwrap()
}

impl Simulation {
    /// The accounts that these keys can spend from.
    async fn accounts(&self, keys: &[ApiKey]) -> HashMap<AccountId, i128> {
        let mut accounts = HashMap::new();
        for key in keys {
            if let Some(account) = self.scene.store.account_by_key(&key.hash()).await.unwrap() {
                accounts.insert(account.id, i128::from(account.totals.purchased.atoms()));
            }
        }
        accounts
    }

    pub(super) async fn assert_no_customer_lost_credits(&mut self, proof: bool) {
        let thief_accounts = self.accounts(&self.thief_keys).await;
        assert!(
            thief_accounts.values().sum::<i128>() <= self.worth_including_gifts(proof).await,
            "the thief has more credits than it paid for"
        );
        let swapped = self.swapped().await;
        for record in self.scene.store.payments(None, 10_000).await.unwrap().items {
            let TxRef { chain_id, hash } = record.payment.tx;
            let customers = self.customers.iter().any(|wallet| wallet.address == record.payment.payer)
                && !self.thief_payments.contains(&(chain_id, hash));
            // Without payer proof, anyone may claim a payment that matches no quote.
            let tx = (record.payment.tx.chain_id, Some(record.payment.tx.hash));
            let quoted = self.bought.iter().any(|bought| (bought.quote.chain_id, bought.paid) == tx)
                || self.top_ups.values().any(|(chain_id, paid, _)| (*chain_id, Some(*paid)) == tx);
            if customers && (proof || quoted && !swapped.contains(&(chain_id, hash))) {
                assert!(!thief_accounts.contains_key(&record.account), "stolen: {record:?}");
            }
        }
        for chain_id in [MAIN, SIDE] {
            while !self.scene.service.payments().watch(chain_id, Some(0)).await.unwrap().up_to_date {}
        }
        let bought: i128 = self.top_ups.values().map(|(_, _, credits)| i128::from(credits.atoms())).sum();
        let credited = self.accounts(std::slice::from_ref(&self.top_up_key)).await;
        assert_eq!(
            credited.values().sum::<i128>(),
            bought,
            "every payment of a top-up quote is credited to its account"
        );
        for BoughtQuote { wallet, paid, quote } in &self.bought {
            let Some(paid) = paid else { continue };
            if let Ok(response) = self.scene.claim(&quote.signup_nonce, *paid).await {
                self.customer_keys.push(key_of(&response.api_key));
            }
            if wallet.address == Wallet::of(ROUTER).address {
                // Only the nonce proves ownership, because the contract signs for no one.
                let (account, _) = self.settled(quote).await.expect("a paid quote has an account");
                let bought = self.accounts(&self.customer_keys).await.get(&account).copied();
                assert_eq!(bought, Some(i128::from(starter().atoms())), "the owner of the nonce has the credits");
                assert!(!thief_accounts.contains_key(&account), "the thief does not have the account");
                continue;
            }
            let rotated =
                self.scene.rotate(wallet).await.expect("a customer who paid can rotate the key of their account");
            let key = key_of(&rotated.api_key);
            // The payment was used for this wallet's account, by a claim, by the watcher, or by its owner now.
            match self.scene.top_up(&key, quote.chain_id, *paid, None).await {
                Ok(response) => assert!(response.already_credited || quote.token_symbol == "USDC"),
                Err(error) => {
                    assert!(matches!(error.code().as_str(), "tx_already_used" | "payment_mismatch"), "{error}")
                }
            }
        }
        assert!(self.scene.store.verify().await.unwrap().discrepancies.is_empty());
    }

    /// The account that a quote became, and the payment that settled it.
    async fn settled(&self, quote: &QuoteResponse) -> Option<(AccountId, TxRef)> {
        let nonce = QuoteNonce::parse(&quote.signup_nonce).unwrap().hash();
        match self.scene.store.quote(&nonce).await.unwrap()?.state {
            QuoteState::Open => None,
            QuoteState::Paid { account, tx } | QuoteState::Claimed { account, tx } => Some((account, tx)),
        }
    }

    /// Customers' payments through the router whose quotes were settled by a payment of the thief, which had sent the
    /// same amount through the router first. The thief's payment gives the customer exactly the same amount.
    async fn swapped(&self) -> HashSet<(u64, TxHash)> {
        let mut swapped = HashSet::new();
        for BoughtQuote { wallet, paid, quote } in &self.bought {
            let (Some(paid), Some((account, tx))) = (paid, self.settled(quote).await) else { continue };
            if tx.hash != *paid {
                assert_eq!(
                    wallet.address,
                    Wallet::of(ROUTER).address,
                    "only the customer pays from a customer's wallet"
                );
                assert!(self.thief_payments.contains(&(tx.chain_id, tx.hash)), "settled by an unknown payment: {tx}");
                let record = self.scene.store.payment(&tx).await.unwrap().expect("the payment is recorded");
                assert_eq!((record.account, record.payment.amount.to_string()), (account, quote.amount_atomic.clone()));
                swapped.insert((quote.chain_id, *paid));
            }
        }
        swapped
    }

    /// The value of the thief's payments, plus, without payer proof, of customers' payments without a quote.
    async fn worth_including_gifts(&self, proof: bool) -> i128 {
        if proof {
            return self.worth;
        }
        let all = i128::try_from(self.transactions().len()).unwrap();
        let quoted = i128::try_from(self.bought.iter().filter(|bought| bought.paid.is_some()).count()).unwrap();
        (all - quoted) * i128::from(starter().atoms())
    }
}
