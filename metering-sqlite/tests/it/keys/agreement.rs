//! The same random operations on keys in this store, by two handles in turn, and in the memory store: every outcome and
//! everything that can be read must be the same.

use std::time::Duration;

use metering_core::access::{BudgetReset, Key, KeyHash, KeyId, KeyStatus, KeyTerms, Scope, Scopes};
use metering_core::charging::{Outcome, Posting, Refund};
use metering_core::store::{KeyChange, KeyChanged, KeyCreated, NewKey, TermsChange};
use metering_core::usage::DayRange;
use metering_core::{AccountId, Credits, Decision, MemoryStore, NewAccount, Store, Timestamp};
use metering_sqlite::SqliteStore;

use super::{BASE, all_scopes, budget, charge_of, hash, terms};
use crate::contract::fast_folder;
use crate::dice::Dice;
use crate::scene::{NOON, grant, new_account};

#[derive(Debug, Clone)]
enum Operation {
    Create(NewKey),
    Change { account: usize, key: KeyId, actor: Option<KeyId>, change: KeyChange },
    Leaked(KeyHash),
    Replace { account: usize, secret: KeyHash },
    ReplaceLive(KeyHash, KeyHash),
    RevokeAccount(usize),
    Charge(Vec<KeyHash>),
    Refund,
}

/// What the operations know of the stores: accounts, keys and secrets, live or not.
struct World {
    accounts: Vec<AccountId>,
    keys: Vec<KeyId>,
    secrets: Vec<KeyHash>,
    next_secret: u8,
    /// What may be refunded in this store, and in the memory store.
    refunds: [Vec<Refund>; 2],
    now: Timestamp,
}

/// The alert is raised when less than this remains of the budget.
const THRESHOLDS: [Option<Credits>; 3] = [None, Some(Credits::BASE_CALL), Some(Credits::from_atoms(4 * BASE))];

impl World {
    fn secret(&mut self, dice: &mut Dice) -> KeyHash {
        if dice.one_in(12) {
            return dice.choose(&self.secrets);
        }
        self.next_secret = self.next_secret.checked_add(1).unwrap();
        self.secrets.push(hash(self.next_secret));
        hash(self.next_secret)
    }

    fn expiry(&self, dice: &mut Dice) -> Timestamp {
        self.now.saturating_add(Duration::from_secs(600 * dice.below(40)))
    }

    fn terms(&self, dice: &mut Dice) -> KeyTerms {
        let mut terms = all_scopes();
        if dice.one_in(3) {
            terms.scopes =
                Scopes::of(vec![dice.choose(&Scope::ALL), dice.choose(&[Scope::Call, Scope::Manage])]).unwrap();
        }
        if dice.one_in(4) {
            terms.routes = dice.choose(&["/x", "GET /*", "/y"]).parse().unwrap();
        }
        if dice.one_in(6) {
            terms.networks = dice.choose(&["10.0.0.0/8", "::/0"]).parse().unwrap();
        }
        if dice.one_in(4) {
            terms.expires_at = Some(self.expiry(dice));
        }
        if dice.one_in(2) {
            let resets = [None, Some(BudgetReset::Daily), Some(BudgetReset::Weekly), Some(BudgetReset::Monthly)];
            terms.budget = budget(i64::try_from(dice.below(12)).unwrap(), dice.choose(&resets));
            terms.alert_below = dice.choose(&THRESHOLDS);
        }
        if dice.one_in(3) {
            terms.limits.requests_per_minute = u32::try_from(dice.below(5)).unwrap();
            terms.limits.requests_per_day = u32::try_from(dice.below(9)).unwrap();
        }
        terms
    }

    fn change(&mut self, dice: &mut Dice) -> KeyChange {
        match dice.below(8) {
            0 => KeyChange::Revoke,
            1 | 2 => {
                let old_until = dice.one_in(2).then(|| self.expiry(dice));
                KeyChange::Rotate { secret: self.secret(dice), old_until }
            }
            _ => {
                let terms_of = self.terms(dice);
                let KeyTerms { scopes, routes, networks, expires_at, limits, budget, alert_below, .. } = terms_of;
                let mut some = |sides| dice.one_in(sides);
                terms(TermsChange {
                    name: some(3).then(|| "changed".parse().unwrap()),
                    scopes: some(3).then_some(scopes),
                    routes: some(4).then_some(routes),
                    networks: some(8).then_some(networks),
                    expires_at: some(4).then_some(expires_at),
                    disabled: some(4).then_some(some(3)),
                    requests_per_minute: some(4).then_some(limits.requests_per_minute),
                    tokens_per_minute: some(8).then_some(50),
                    requests_per_day: some(4).then_some(limits.requests_per_day),
                    max_in_flight: some(4).then_some(7),
                    alert_below: some(3).then_some(alert_below),
                    limit: some(2).then_some(budget.map(|budget| budget.limit)),
                    limit_reset: some(3).then_some(budget.and_then(|budget| budget.reset)),
                })
            }
        }
    }

    fn operation(&mut self, dice: &mut Dice) -> Operation {
        let account = usize::try_from(dice.below(self.accounts.len() as u64)).unwrap();
        match dice.below(20) {
            0..=3 => Operation::Create(NewKey {
                account: self.accounts[account].clone(),
                parent: (!dice.one_in(4)).then(|| dice.choose(&self.keys)),
                secret: self.secret(dice),
                terms: self.terms(dice),
                max_keys: 6,
                created_at: self.now,
            }),
            4..=8 => {
                let (key, change) = (dice.choose(&self.keys), self.change(dice));
                let actor = dice.one_in(2).then(|| dice.choose(&self.keys));
                Operation::Change { account, key, actor, change }
            }
            9 => Operation::Leaked(dice.choose(&self.secrets)),
            10 if dice.one_in(4) => Operation::Replace { account, secret: self.secret(dice) },
            11 => Operation::ReplaceLive(dice.choose(&self.secrets), self.secret(dice)),
            12 if dice.one_in(12) => Operation::RevokeAccount(account),
            13 | 14 => Operation::Refund,
            _ => Operation::Charge((0..=dice.below(6)).map(|_| dice.choose(&self.secrets)).collect()),
        }
    }

    /// Runs an operation; the outcome as text, since both stores must return the same.
    async fn run(&mut self, store: &dyn Store, operation: Operation, refunds: usize) -> String {
        let now = self.now;
        match operation {
            Operation::Create(new) => {
                let created = store.create_key(new).await;
                if let Ok(KeyCreated::Key(key)) = &created {
                    self.note(key);
                }
                format!("{created:?}")
            }
            Operation::Change { account, key, actor, change } => {
                let changed = store.change_key(&self.accounts[account], &key, actor.as_ref(), change, now).await;
                if let Ok(KeyChanged::Key(key)) = &changed {
                    self.note(key);
                }
                format!("{changed:?}")
            }
            Operation::Leaked(secret) => format!("{:?}", store.report_leaked(&secret, now).await),
            Operation::Replace { account, secret } => {
                format!("{:?}", store.replace_key(&self.accounts[account], secret, now).await)
            }
            Operation::ReplaceLive(old, new) => format!("{:?}", store.replace_live_key(&old, new, now).await),
            Operation::RevokeAccount(account) => {
                format!("{:?}", store.revoke_account(&self.accounts[account], now).await)
            }
            Operation::Charge(secrets) => {
                let route = |place: usize| if place.is_multiple_of(3) { "/y" } else { "/x" };
                let postings = secrets.iter().enumerate();
                let postings = postings.map(|(place, key)| Posting::Charge(charge_of(*key, route(place), BASE)));
                let outcomes = store.commit(postings.collect(), now).await.unwrap();
                let text = format!("{outcomes:?}");
                for outcome in outcomes {
                    if let Outcome::Decided(Decision::Accepted(receipt)) = outcome {
                        self.refunds[refunds].extend(receipt.into_refund());
                    }
                }
                text
            }
            Operation::Refund => match self.refunds[refunds].pop() {
                Some(refund) => format!("{:?}", store.commit(vec![Posting::Refund(refund)], now).await),
                None => String::new(),
            },
        }
    }

    fn note(&mut self, key: &Key) {
        if !self.keys.contains(&key.id) {
            self.keys.push(key.id.clone());
        }
    }

    /// Everything that can be read of keys, as text.
    async fn read(&self, store: &dyn Store) -> String {
        let mut text = format!("{:?}\n", store.live_keys(&self.secrets, self.now).await.unwrap());
        for secret in &self.secrets {
            text += &format!("{:?}\n", store.key_holder(secret).await.unwrap());
        }
        for id in &self.accounts {
            let (mut keys, mut after): (Vec<KeyStatus>, _) = (Vec::new(), None);
            loop {
                let page = store.keys(id, after.as_ref(), 2, self.now.day()).await.unwrap();
                keys.extend(page.items);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            let labels = store.key_labels(id).await.unwrap();
            let days = DayRange::last_days(self.now, 60);
            let report = store.usage_report(id, days).await.unwrap();
            text += &format!("{keys:#?}\n{labels:?}\n{report:?}\n");
            for key in &self.keys {
                text += &format!("{:?}\n", store.key(id, key, self.now.day()).await.unwrap());
            }
        }
        text + &format!("{:?}", store.verify().await.unwrap())
    }
}

/// Returns all outcomes.
async fn agree(seed: u64) -> String {
    let folder = fast_folder();
    let file = folder.path().join("metering.db");
    let handles = [SqliteStore::open(&file).unwrap(), SqliteStore::open(&file).unwrap()];
    let memory = MemoryStore::new();
    let mut dice = Dice(seed);
    let (accounts, keys, now) = (Vec::new(), Vec::new(), NOON);
    let mut world =
        World { accounts, keys, secrets: Vec::new(), next_secret: 100, refunds: [Vec::new(), Vec::new()], now };
    for number in 1..3 {
        let new = NewAccount { key: hash(number), entries: vec![grant(20)], ..new_account() };
        world.accounts.push(new.id.clone());
        world.secrets.push(new.key);
        world.keys.push(KeyId::of_first(&new.key));
        for store in [&memory as &dyn Store, &handles[0]] {
            store.create_account(new.clone()).await.unwrap();
        }
    }
    let mut outcomes = String::new();
    for step in 0..90 {
        let operation = world.operation(&mut dice);
        let store = &handles[usize::try_from(dice.below(2)).unwrap()];
        let found = world.run(store, operation.clone(), 0).await;
        let expected = world.run(&memory, operation.clone(), 1).await;
        assert_eq!(found, expected, "seed {seed}, step {step}: {operation:?}");
        outcomes += &found;
        if step % 8 == 0 {
            let found = world.read(store).await;
            assert_eq!(found, world.read(&memory).await, "seed {seed}, step {step}: {operation:?}");
            outcomes += &found;
        }
        if dice.one_in(10) {
            let hours = dice.choose(&[1, 1, 30, 200]);
            world.now = world.now.saturating_add(Duration::from_secs(3_600 * hours));
        }
    }
    outcomes
}

#[tokio::test]
async fn random_operations_on_keys_do_what_they_do_in_memory() {
    let mut outcomes = String::new();
    for seed in 0..60 {
        outcomes += &agree(seed).await;
    }
    let expected = [
        "Ok(Key(",
        "NoSuchAccount",
        "NoSuchParent",
        "TooMany",
        "Wider(",
        "NoSuchKey",
        "FirstKey",
        "Leaked",
        "NoLimit",
        "already in use",
        "Ok(Some(Key ",
        "Ok(Some(Account ",
        "Accepted(",
        "UnknownKey",
        "Key(Route)",
        "Key(Network",
        "Key(Scope",
        "Expired",
        "KeyBudget",
        "RateLimited",
        "InsufficientCredits",
        "Refunded(Some(",
    ];
    let missing: Vec<_> = expected.iter().filter(|outcome| !outcomes.contains(**outcome)).collect();
    assert!(missing.is_empty(), "the operations never led to {missing:?}");
}
