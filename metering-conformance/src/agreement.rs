//! Applies the same operations to a store's openers and to the [`Model`], and compares every result.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use metering_core::access::{AccountId, Email, EmailStatus, KeyHash, Payer, RateLimits};
use metering_core::catalogue::VolumeTiers;
use metering_core::charging::{HoldAction, HoldId, HoldTerms, HoldUpdate, Outcome, Posting, Refund, VolumeTerms};
use metering_core::clock::Timestamp;
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::payments::Quote;
use metering_core::store::{Created, FullStore, NewAccount, StoreError};
use metering_core::usage::{ClientSource, UsageLine};
use metering_core::{Charge, Decision, Receipt, RequestId};

use super::model::{Expected, InUse, Model};
use super::operation::{HoldStep, Item, Operation};
use super::reading;
use super::sale::wallet;
use super::scene::{BASE, NOON, atoms};

mod authorizations;
mod keys;
mod sales;
mod signups;

/// Applies `operations` to a fresh database and to the model, and compares everything that can be read. Each opener
/// must see the changes of the others immediately.
///
/// # Panics
/// At the first difference, or when `openers` is empty.
pub async fn agrees_with_model(openers: Vec<Arc<dyn FullStore>>, operations: Vec<Operation>) {
    let mut pair = Pair {
        store: Arc::clone(openers.first().expect("there is at least one opener")),
        openers,
        turns: 0,
        model: Model::default(),
        keys: Vec::new(),
        receipts: Vec::new(),
        holds: Vec::new(),
        quotes: Vec::new(),
        now: NOON,
        made_ids: 0,
        made_keys: 0,
        made_holds: 0,
    };
    for operation in operations {
        pair.apply(operation).await;
        reading::accounts_agree(&*pair.store, &pair.model).await;
    }
    for store in &pair.openers {
        reading::everything_agrees(&**store, &pair.model, &pair.keys, pair.now).await;
        reading::payments_agree(&**store, &pair.model, &pair.quotes, pair.now).await;
        reading::authorizations_agree(&**store, &pair.model).await;
        reading::signups_agree(&**store, &pair.model).await;
    }
}

/// The store and the model, with the numbered items that operations refer to.
struct Pair {
    openers: Vec<Arc<dyn FullStore>>,
    /// How many turns are done.
    turns: usize,
    /// The current opener.
    store: Arc<dyn FullStore>,
    model: Model,
    /// Every key that an account ever had.
    keys: Vec<KeyHash>,
    /// Receipts that can still be refunded. A refund consumes a receipt, so the model's are compared and dropped.
    receipts: Vec<Receipt>,
    /// Every hold that was ever opened.
    holds: Vec<(AccountId, HoldId)>,
    /// Every quote that was ever stored, in its state when it was opened.
    quotes: Vec<Quote>,
    now: Timestamp,
    made_ids: u32,
    made_keys: u32,
    made_holds: u32,
}

impl Pair {
    async fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Create { email, capitals, wallet: number, limits, entries, key } => {
                let payer = number.map(|number| Payer { address: wallet(number), chain_id: 8453 });
                let email = email.map(|number| email_address(number, capitals));
                let key = self.key(key);
                self.create(email, payer, limits, &entries, key).await;
            }
            Operation::Commit(items) => self.commit(items).await,
            Operation::Post { account, kind, atoms } => self.post(account, kind, atoms).await,
            Operation::SetLimits { account, limits } => {
                let Some(number) = self.number(account) else { return };
                let result = self.store.set_limits(&self.model.id(number), limits).await.unwrap();
                self.model.owners[number].limits = limits;
                assert_eq!(result, Some(self.model.owners[number].account()), "the limits were set");
            }
            Operation::SetAlert { account, threshold } => {
                let Some(number) = self.number(account) else { return };
                let threshold = threshold.map(atoms);
                let result = self.store.set_balance_alert(&self.model.id(number), threshold).await.unwrap();
                self.model.owners[number].set_threshold(threshold);
                assert_eq!(result, Some(self.model.owners[number].account()), "the threshold was set");
            }
            Operation::Revoke { account } => {
                let Some(number) = self.number(account) else { return };
                let result = self.store.revoke_account(&self.model.id(number), self.now).await.unwrap();
                self.model.owners[number].revoked_at.get_or_insert(self.now);
                assert_eq!(result, Some(self.model.owners[number].account()), "the account was revoked");
            }
            Operation::ReplaceKey { account, key } => self.replace_key(account, key).await,
            Operation::Keys(operation) => self.change_keys(operation).await,
            Operation::Sell(sale) => self.sell(sale).await,
            Operation::Authorize(operation) => self.authorize(operation).await,
            Operation::SignUp(signup) => self.sign_up(signup).await,
            Operation::SetRefill(refill) => {
                self.store.set_refill(refill).await.unwrap();
                self.model.set_refill(refill);
                assert_eq!(self.store.refill().await.unwrap(), refill, "the rule was set");
            }
            Operation::Refill { limit } => {
                let refilled = self.store.refill_accounts(self.now, limit.into()).await.unwrap();
                assert_eq!(refilled, self.model.refill_accounts(self.now, limit.into()), "who was refilled");
            }
            Operation::Forget => {
                let forgotten = self.store.forget_expired(self.now).await.unwrap();
                assert_eq!(forgotten, self.model.forget(self.now), "how many items were deleted");
            }
            Operation::Pass { millis } => {
                self.now = Timestamp::from_unix_millis(self.now.unix_millis() + millis);
            }
            Operation::Turn => {
                self.turns += 1;
                self.store = Arc::clone(&self.openers[self.turns % self.openers.len()]);
            }
        }
    }

    /// The number of an account, if any exists.
    fn number(&self, any: usize) -> Option<usize> {
        any.checked_rem(self.model.owners.len())
    }

    fn new_id(&mut self) -> AccountId {
        self.made_ids += 1;
        account_id(self.made_ids)
    }

    /// An old key by its number, or a new one.
    fn key(&mut self, old: Option<usize>) -> KeyHash {
        let old = old.and_then(|any| Some(self.keys[any.checked_rem(self.keys.len())?]));
        old.unwrap_or_else(|| self.new_key())
    }

    fn new_key(&mut self) -> KeyHash {
        self.made_keys += 1;
        key_hash(self.made_keys)
    }

    async fn create(
        &mut self,
        email: Option<Email>,
        payer: Option<Payer>,
        limits: RateLimits,
        entries: &[(LedgerKind, i64)],
        key: KeyHash,
    ) {
        let new = NewAccount {
            id: self.new_id(),
            agent_name: format!("agent-{}", self.made_ids).parse().unwrap(),
            email,
            email_status: EmailStatus::Unchecked,
            payer,
            limits,
            key,
            entries: entries.iter().map(|(kind, amount)| entry(*kind, *amount)).collect(),
            created_at: self.now,
        };
        let expected = self.model.create(&new);
        if matches!(expected, Ok(Created::Account(_))) {
            self.keys.push(key);
        }
        assert_agree(self.store.create_account(new).await, expected, "whether the account was created");
    }

    async fn post(&mut self, account: usize, kind: LedgerKind, amount: i64) {
        let Some(number) = self.number(account) else { return };
        let entry = entry(kind, amount);
        let expected = self.model.post(number, &entry, self.now);
        let result = self.store.post_entry(&self.model.id(number), entry, self.now).await.unwrap();
        assert_eq!(result, expected, "whether the entry was written");
    }

    async fn replace_key(&mut self, account: usize, key: Option<usize>) {
        let Some(number) = self.number(account) else { return };
        let key = self.key(key);
        let result = self.store.replace_key(&self.model.id(number), key, self.now).await;
        let expected = self.model.replace_key(number, key, self.now);
        if matches!(expected, Ok(Some(_))) {
            self.keys.push(key);
        }
        assert_agree(result, expected, "whether the key was replaced");
    }

    async fn commit(&mut self, items: Vec<Item>) {
        let mut postings = Vec::new();
        let mut expected = Vec::new();
        for item in items {
            match item {
                Item::Charge { key, atoms, line, path, request, hold } => {
                    let hold = hold.map(|terms| self.terms(terms));
                    let charge = self.charge(key, atoms, line, path, request).with_hold(hold);
                    let decision = self.model.charge(charge.clone(), self.now);
                    if let Ok(receipt) = &decision {
                        self.holds.extend(receipt.hold.map(|held| (receipt.account.clone(), held.id)));
                    }
                    expected.push(Expected::Decided(decision));
                    postings.push(Posting::Charge(charge));
                }
                Item::Update { hold, step } => {
                    let Some(update) = self.update(hold, step) else { continue };
                    expected.push(Expected::Hold(self.model.update_hold(&update, self.now)));
                    postings.push(Posting::Hold(update));
                }
                Item::Refund { receipt } => {
                    let Some(refund) = self.refund(receipt) else { continue };
                    expected.push(Expected::Refunded(self.model.refund(&refund, self.now)));
                    postings.push(Posting::Refund(refund));
                }
            }
        }
        let outcomes = self.store.commit(postings, self.now).await.unwrap();
        let found: Vec<_> = outcomes.iter().map(Expected::of).collect();
        assert_eq!(found, expected, "the outcomes of a batch");
        self.receipts.extend(outcomes.into_iter().filter_map(|outcome| match outcome {
            Outcome::Decided(Decision::Accepted(receipt)) => Some(receipt),
            _ => None,
        }));
    }

    fn charge(&self, key: usize, price: i64, line: u8, path: u8, request: Option<u8>) -> Charge {
        // One past the last key means the next key to be generated, which no account has yet.
        let key = self.keys.get(key % (self.keys.len() + 1)).copied();
        // One of the routes has volume tiers, for most of its requests.
        let is_by_volume = line == 1 && path < 2;
        let (line, rest) = (line_of(line), atoms(price));
        let tiers = VolumeTiers::new(vec![(2, atoms(0)), (4, atoms(BASE))], rest).expect("prices are not negative");
        let by_volume = is_by_volume.then(|| VolumeTerms { tiers: Arc::new(tiers), max_cost: None });
        let price = by_volume.as_ref().map_or(rest, |terms| terms.tiers.max());
        let request_path = format!("{}?{path}", line.route_template);
        Charge::of(key.unwrap_or(key_hash(self.made_keys + 1)), price, line)
            .with_by_volume(by_volume)
            .with_path(request_path)
            .with_request_id(request.map(|number| RequestId::parse(&format!("request-{number}")).unwrap()))
    }

    fn terms(&mut self, (lease, fallback): (u32, i64)) -> HoldTerms {
        self.made_holds += 1;
        let mut id = [0x5A; 16];
        // Ids are random, so their order is not that of the holds.
        id[..4].copy_from_slice(&self.made_holds.reverse_bits().to_be_bytes());
        let (id, lease) = (HoldId::from_bytes(id), Duration::from_millis(lease.into()));
        HoldTerms { id, lease, fallback: atoms(fallback) }
    }

    /// An update of a hold that was opened.
    fn update(&self, any: usize, step: HoldStep) -> Option<HoldUpdate> {
        let (account, id) = self.holds[any.checked_rem(self.holds.len())?].clone();
        let action = match step {
            HoldStep::Capture(cost, may_exceed) => HoldAction::Capture { cost: atoms(cost), may_exceed },
            HoldStep::CaptureFallback => HoldAction::CaptureFallback,
            HoldStep::Release => HoldAction::Release,
            HoldStep::Expire => HoldAction::Expire,
            HoldStep::Renew(millis) => {
                HoldAction::Renew { until: Timestamp::from_unix_millis(self.now.unix_millis() + millis) }
            }
        };
        Some(HoldUpdate::new(account, id, action))
    }

    /// Takes a receipt and turns it into its refund.
    fn refund(&mut self, any: usize) -> Option<Refund> {
        let number = any.checked_rem(self.receipts.len())?;
        self.receipts.swap_remove(number).into_refund()
    }
}

/// Compares a result with the model's. The model says only that there is an error, not which one.
fn assert_agree<T: PartialEq + Debug>(result: Result<T, StoreError>, expected: Result<T, InUse>, what: &str) {
    match expected {
        Ok(expected) => assert_eq!(result.unwrap(), expected, "{what}"),
        Err(InUse) => assert!(result.is_err(), "{what}: something is in use, but the store returned {result:?}"),
    }
}

fn account_id(number: u32) -> AccountId {
    format!("org_{number:020}").parse().unwrap()
}

fn key_hash(number: u32) -> KeyHash {
    let mut bytes = [0xA5; 32];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    KeyHash::from_bytes(bytes)
}

fn email_address(number: u8, capitals: bool) -> Email {
    let text = format!("grün{number}@example.com");
    if capitals { text.to_uppercase().parse().unwrap() } else { text.parse().unwrap() }
}

fn entry(kind: LedgerKind, amount: i64) -> NewLedgerEntry {
    NewLedgerEntry::new(kind, atoms(amount), format!("{amount} atoms"))
}

/// Four lines that differ in one field each.
fn line_of(number: u8) -> UsageLine {
    let lines = [
        ("/a", "GET", ClientSource::Direct),
        ("/b", "GET", ClientSource::Direct),
        ("/a", "POST", ClientSource::Direct),
        ("/a", "GET", ClientSource::Mcp),
    ];
    let (template, method, source) = lines[usize::from(number % 4)];
    UsageLine { route_template: template.into(), http_method: method.into(), source }
}
