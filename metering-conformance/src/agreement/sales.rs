//! Applies operations on quotes, payments and challenges to the store and the model.

use std::time::Duration;

use metering_core::access::{EmailStatus, KeyHash, Payer};
use metering_core::chains::{Block, TokenUnits, TxRef};
use metering_core::money::{LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::payments::{
    Challenge, NonceHash, Payment, PaymentRecord, PaymentTarget, PaymentUse, Quote, QuoteState, SettlementStep,
};
use metering_core::store::{Claim, Claimed, KeyDelivery, NewAccount, PaymentCredit, QuotePrecedence, SettlementChange};

use super::super::operation::{HASHES, Price, Sale, chain, nonce, target};
use super::super::sale::{PLAN, SOLD, sold, tx_on, value, wallet};
use super::super::scene::{MINUTE, atoms};
use super::{Pair, account_id, assert_agree, email_address, entry};

/// A ledger entry that names its payment.
fn paid_entry((kind, amount): (LedgerKind, i64), tx: TxRef, plan_id: Option<&str>) -> NewLedgerEntry {
    let payment = Some(PaymentRef { tx, plan_id: plan_id.map(str::to_owned) });
    NewLedgerEntry { payment, ..entry(kind, amount) }
}

impl Pair {
    pub(super) async fn sell(&mut self, sale: Sale) {
        match sale {
            Sale::Quote { price, email, capitals } => {
                let email = email.map(|number| email_address(number, capitals));
                let quote = Quote { email, ..self.quote(price) };
                self.open_quote(quote).await;
            }
            Sale::Claim { quote, hash, late, entries, key } => {
                let delivery = if late { KeyDelivery::Later } else { KeyDelivery::Now };
                let key = self.key(key);
                let claim = self.claim(quote, hash, &entries, key);
                self.claim_quote(Claim { delivery, ..claim }).await;
            }
            Sale::Credit { account, quote, price, hash, assigned, entry, names_plan, links, yields } => {
                let (_, quote) = self.kept_quote(quote).unwrap_or_else(|| (0, self.quote(price)));
                let payment = self.payment(&quote, hash);
                let number = account.and_then(|account| self.number(account));
                let credit = PaymentCredit {
                    account: number.map_or(account_id(0), |number| self.model.id(number)),
                    used_as: if assigned { PaymentUse::Assigned } else { PaymentUse::Topup },
                    entry: match names_plan {
                        None => super::entry(entry.0, entry.1),
                        Some(plan) => paid_entry(entry, payment.tx, plan.then_some(PLAN)),
                    },
                    payment,
                    sold: assigned.then(sold),
                    value: (!assigned).then(value),
                    link_payer: links,
                    quotes: if yields { QuotePrecedence::Quote } else { QuotePrecedence::Account },
                    now: self.now,
                };
                self.credit_payment(credit).await;
            }
            Sale::Settle { payment, step, block, stale } => self.settle(payment, step, block, stale).await,
            Sale::Challenge { account, wallet, nonce } => self.open_challenge(account, wallet, nonce).await,
            Sale::Fail { nonce: number, times } => {
                for _ in 0..times {
                    self.model.fail_challenge(&nonce(number));
                    self.store.fail_challenge(&nonce(number)).await.unwrap();
                }
            }
            Sale::Rotate { nonce: number, key } => {
                let key = self.key(key);
                let expected = self.model.rotate_key(&nonce(number), key, self.now);
                if matches!(expected, Ok(Some(_))) {
                    self.keys.push(key);
                }
                let result = self.store.rotate_key(&nonce(number), key, self.now).await;
                assert_agree(result, expected, "whether the key was rotated");
            }
            Sale::Scan { chain: number, block } => {
                self.model.scanned(chain(number), block);
                self.store.set_scan_mark(chain(number), block).await.unwrap();
            }
        }
    }

    /// A quote opened now, with an unused nonce.
    fn quote(&self, price: Price) -> Quote {
        let mut nonce = [0xC3; 32];
        nonce[..8].copy_from_slice(&u64::try_from(self.quotes.len()).unwrap().to_be_bytes());
        Quote {
            nonce: NonceHash::from_bytes(nonce),
            agent_name: format!("buyer-{}", self.quotes.len()).parse().unwrap(),
            email: None,
            payer: wallet(price.wallet),
            top_up: None,
            target: target(price.target),
            amount: TokenUnits::new(u128::MAX - u128::from(price.amount)),
            plan_id: PLAN.to_owned(),
            credits: atoms(SOLD),
            bonus_credits: atoms(i64::from(price.amount)),
            created_at: self.now,
            expires_at: self.now.saturating_add(MINUTE * 30),
            state: QuoteState::Open,
        }
    }

    /// A payment made now that matches a quote.
    fn payment(&self, quote: &Quote, hash: u8) -> Payment {
        let PaymentTarget { chain_id, token, recipient } = quote.target;
        let (payer, amount, mined_at) = (quote.payer, quote.amount, self.now);
        let block_number = u64::MAX - u64::from(hash);
        // Some payments have no known block hash; those are final immediately.
        let block_hash = (hash > 0).then_some([hash; 32]);
        Payment { tx: tx_on(chain_id, hash), payer, recipient, token, amount, block_number, block_hash, mined_at }
    }

    async fn open_quote(&mut self, quote: Quote) {
        let expected = self.model.open_quote(&quote);
        assert_agree(self.store.open_quote(quote.clone()).await, expected, "whether the quote was opened");
        let kept = self.store.quote(&quote.nonce).await.unwrap();
        assert_eq!(kept, self.model.quote(&quote.nonce), "whether the quote is stored");
        if kept.is_some() {
            self.quotes.push(quote);
        }
    }

    /// A quote ever stored, and the hash that most of its claims use.
    fn kept_quote(&self, any: Option<usize>) -> Option<(u8, Quote)> {
        let number = any?.checked_rem(self.quotes.len())?;
        Some((u8::try_from(number % usize::from(HASHES)).unwrap(), self.quotes[number].clone()))
    }

    fn claim(&mut self, quote: Option<usize>, hash: Option<u8>, entries: &[(LedgerKind, i64)], key: KeyHash) -> Claim {
        let unknown = || (0, self.quote(Price { wallet: 0, amount: 0, target: 0 }));
        let (own_hash, quote) = self.kept_quote(quote).unwrap_or_else(unknown);
        let payment = self.payment(&quote, hash.unwrap_or(own_hash));
        let mut first_entries: Vec<_> = entries.iter().map(|(kind, amount)| entry(*kind, *amount)).collect();
        if let (Some(first), Some(bought)) = (first_entries.first_mut(), entries.first()) {
            *first = paid_entry(*bought, payment.tx, Some(PLAN));
        }
        let account = NewAccount {
            id: self.new_id(),
            agent_name: quote.agent_name.clone(),
            email: quote.email.clone(),
            email_status: EmailStatus::Unchecked,
            payer: Some(Payer { address: quote.payer, chain_id: quote.target.chain_id }),
            limits: metering_core::RateLimits::NONE,
            key,
            entries: first_entries,
            created_at: self.now,
        };
        let (sold, value, delivery) = (Some(sold()), Some(value()), KeyDelivery::Now);
        Claim { nonce: quote.nonce, payment, account, sold, value, delivery, now: self.now }
    }

    async fn claim_quote(&mut self, claim: Claim) {
        let (nonce, key) = (claim.nonce, claim.account.key);
        let expected = self.model.claim(&claim);
        if matches!(expected, Ok(Claimed::Account(_))) {
            self.keys.push(key);
        }
        assert_agree(self.store.claim_quote(claim).await, expected, "whether the quote was claimed");
        assert_eq!(self.store.quote(&nonce).await.unwrap(), self.model.quote(&nonce), "the quote after its claim");
    }

    async fn credit_payment(&mut self, credit: PaymentCredit) {
        let expected = self.model.credit(&credit);
        let result = self.store.credit_payment(credit).await.unwrap();
        assert_eq!(result, expected, "whether the payment was credited");
    }

    async fn settle(&mut self, payment: usize, step: u8, number: u8, stale: bool) {
        let records = self.model.records();
        let Some(seen) = payment.checked_rem(records.len()).map(|index| records[index].clone()) else { return };
        let block = Block { number: number.into(), hash: [number; 32], time: self.now };
        let step = match step {
            0 => SettlementStep::Finalize,
            1 => SettlementStep::Move(block),
            2 => SettlementStep::Reverse,
            _ => SettlementStep::Restore(block),
        };
        let seen = if stale { PaymentRecord { plan_id: Some("another".to_owned()), ..seen } } else { seen };
        let change = SettlementChange { seen, step, now: self.now };
        let expected = self.model.settle(&change);
        assert_eq!(self.store.settle_payment(change).await.unwrap(), expected, "whether the payment was settled");
    }

    async fn open_challenge(&mut self, account: usize, address: Option<u8>, number: u8) {
        let Some(account) = self.number(account) else { return };
        let payer = self.model.owners[account].made.payer.map(|payer| payer.address);
        let challenge = Challenge {
            nonce: nonce(number),
            address: address.map(wallet).or(payer).unwrap_or(wallet(0)),
            account: self.model.id(account),
            message: format!("Challenge at {}", self.now),
            expires_at: self.now.saturating_add(Duration::from_secs(600)),
            failures: 0,
        };
        let expected = self.model.open_challenge(&challenge);
        assert_agree(self.store.open_challenge(challenge).await, expected, "whether the challenge was opened");
    }
}
