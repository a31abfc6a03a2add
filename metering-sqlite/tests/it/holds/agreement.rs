//! The same random batches with holds in this store, by two handles in turn that are reopened now and then, and in the
//! memory store: every outcome and everything that can be read must be the same.

use std::path::PathBuf;
use std::time::Duration;

use metering_core::access::{Budget, BudgetReset, KeyHash, KeyId, KeyTerms, Scopes};
use metering_core::charging::{
    Attempt, DeliveryTerms, Fingerprint, HoldAction, HoldId, HoldTerms, HoldUpdate, IdempotencyKey, Outcome, Posting,
    Refund, Settlement,
};
use metering_core::store::{KeyChange, NewKey, TermsChange};
use metering_core::usage::{Activity, DayRange};
use metering_core::{
    AccountId, Charge, Decision, MemoryStore, NewAccount, RateLimits, Receipt, RequestId, Store, Timestamp,
};
use metering_sqlite::SqliteStore;

use super::{calls, charge_of};
use crate::contract::fast_folder;
use crate::dice::Dice;
use crate::scene::{NOON, grant, new_account};

/// The test's view of the stores.
struct World {
    dice: Dice,
    accounts: Vec<AccountId>,
    /// The first account's keys, from its first one down, and the other's.
    secrets: Vec<KeyHash>,
    keys: Vec<KeyId>,
    holds: Vec<HoldId>,
    /// The operations that may follow a charge, for this store and for the memory store.
    receipts: Vec<[Option<After>; 2]>,
    now: Timestamp,
}

/// The operations that may follow an accepted charge or hold.
struct After {
    refund: Option<Refund>,
    settlement: Option<Settlement>,
    attempt: Option<Attempt>,
}

impl After {
    fn of(receipt: Receipt) -> Self {
        let (settlement, attempt) = (receipt.settlement(), receipt.delivery.clone());
        Self { settlement, attempt, refund: receipt.into_refund() }
    }
}

/// The same posting for both stores: those that follow a charge cannot be copied.
type Both = [Posting; 2];

impl World {
    fn charge(&mut self) -> Charge {
        let dice = &mut self.dice;
        let price = calls(i64::try_from(dice.below(6)).unwrap());
        let charge = charge_of(dice.choose(&self.secrets), 0).with_price(price);
        let mut line = charge.line.clone();
        line.route_template = dice.choose(&["/{n}", "/m"]).into();
        let hold = (!dice.one_in(3)).then(|| {
            let mut id = [0; 16];
            id.fill_with(|| u8::try_from(dice.below(256)).unwrap());
            let lease = Duration::from_secs(dice.choose(&[10, 60, 7_200, 100_000]));
            let fallback = calls(i64::try_from(dice.below(4)).unwrap());
            HoldTerms { id: HoldId::from_bytes(id), lease, fallback }
        });
        self.holds.extend(hold.map(|terms| terms.id));
        let (mut request_id, mut delivery) = (None, None);
        if dice.one_in(3) {
            let key = IdempotencyKey::parse(dice.choose(&["a", "b", "c"])).unwrap();
            request_id = Some(RequestId::of_idempotency_key(&key));
            let fingerprint = Fingerprint::of("GET", "/", &line);
            delivery = Some(DeliveryTerms { fingerprint, lease: Duration::from_secs(60) });
        } else if dice.one_in(4) {
            request_id = Some(RequestId::parse(dice.choose(&["d", "e"])).unwrap());
        }
        let request_path = dice.choose(&["/m", "/1", "/2"]);
        charge
            .with_line(line)
            .with_hold(hold)
            .with_request_id(request_id)
            .with_delivery(delivery)
            .with_path(request_path)
    }

    fn update(&mut self) -> HoldUpdate {
        let dice = &mut self.dice;
        // Mostly one of the last ones, which may be of the same batch.
        let recent = self.holds.len().saturating_sub(if dice.one_in(4) { usize::MAX } else { 5 });
        let unknown = HoldId::from_bytes([0; 16]);
        let id = if self.holds.is_empty() || dice.one_in(20) { unknown } else { dice.choose(&self.holds[recent..]) };
        let cost = calls(i64::try_from(dice.below(8)).unwrap());
        let action = match dice.below(8) {
            0..=2 => HoldAction::Capture { cost, may_exceed: dice.one_in(2) },
            3 => HoldAction::CaptureFallback,
            4 | 5 => HoldAction::Release,
            6 => HoldAction::Expire,
            _ => HoldAction::Renew { until: self.now.saturating_add(Duration::from_secs(dice.below(9_000))) },
        };
        let account = self.accounts[usize::from(dice.one_in(3))].clone();
        let attempts = self.receipts.iter().filter_map(|[after, _]| after.as_ref()?.attempt.clone());
        let attempts: Vec<_> = attempts.collect();
        let delivery = (!attempts.is_empty() && dice.one_in(3)).then(|| dice.choose(&attempts));
        HoldUpdate { delivery, ..HoldUpdate::new(account, id, action) }
    }

    fn posting(&mut self) -> Both {
        match self.dice.below(10) {
            0..=3 => {
                let charge = self.charge();
                [Posting::Charge(charge.clone()), Posting::Charge(charge)]
            }
            9 if !self.receipts.is_empty() => {
                let place = usize::try_from(self.dice.below(self.receipts.len() as u64)).unwrap();
                let is_refund = self.dice.one_in(2);
                let posting = |after: Option<After>| match after {
                    Some(After { refund: Some(refund), .. }) if is_refund => Some(Posting::Refund(refund)),
                    Some(After { settlement: Some(settlement), .. }) => Some(Posting::Settle(settlement)),
                    _ => None,
                };
                match self.receipts.swap_remove(place).map(posting) {
                    [Some(here), Some(there)] => [here, there],
                    _ => self.posting(),
                }
            }
            _ => {
                let update = self.update();
                [Posting::Hold(update.clone()), Posting::Hold(update)]
            }
        }
    }

    async fn batch(&mut self, stores: [&dyn Store; 2], context: &str) -> String {
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for _ in 0..=self.dice.below(6) {
            let [a, b] = self.posting();
            here.push(a);
            there.push(b);
        }
        let text = format!("{here:?}");
        let found = stores[0].commit(here, self.now).await.unwrap();
        let expected = stores[1].commit(there, self.now).await.unwrap();
        assert_eq!(found, expected, "{context}: {text}");
        let outcomes = format!("{found:?}");
        let after = |outcome| match outcome {
            Outcome::Decided(Decision::Accepted(receipt)) => Some(After::of(receipt)),
            _ => None,
        };
        let both = found.into_iter().map(after).zip(expected.into_iter().map(after));
        self.receipts.extend(both.map(|(here, there)| [here, there]).filter(|both| both[0].is_some()));
        outcomes
    }

    /// A change of something else that holds are counted against.
    async fn other(&mut self, stores: [&dyn Store; 2], context: &str) {
        let dice = &mut self.dice;
        let (account, key) = (dice.choose(&self.accounts), dice.choose(&self.keys));
        let limit = Some(dice.choose(&[None, Some(calls(8)), Some(calls(30))]));
        let reset = dice.choose(&[None, Some(BudgetReset::Daily), Some(BudgetReset::Monthly)]);
        let threshold = dice.choose(&[None, Some(calls(3)), Some(calls(12))]);
        let alert_below = limit.flatten().map(|_| threshold);
        let limit_reset = limit.flatten().map(|_| reset);
        let change = TermsChange { limit, limit_reset, alert_below, ..TermsChange::default() };
        let limits = RateLimits::per_minute(dice.choose(&[0, 3, 9])).and_per_day(dice.choose(&[0, 20]));
        let (kind, count) = (dice.below(9), i64::try_from(dice.below(20)).unwrap());
        let mut outcomes = Vec::new();
        for store in stores {
            outcomes.push(match kind {
                0..=2 => format!("{:?}", store.post_entry(&account, grant(count + 1), self.now).await.unwrap()),
                3 | 4 => {
                    let change = KeyChange::Terms(Box::new(change.clone()));
                    format!("{:?}", store.change_key(&self.accounts[0], &key, None, change, self.now).await.unwrap())
                }
                5 => format!("{:?}", store.set_limits(&account, limits).await.unwrap()),
                _ => store.forget_expired(self.now).await.unwrap().to_string(),
            });
        }
        assert_eq!(outcomes[0], outcomes[1], "{context}");
    }

    /// Everything that can be read of holds and what they change, as text.
    async fn read(&self, store: &dyn Store) -> String {
        let mut text = format!("{:?}\n", store.expired_holds(self.now, 7).await.unwrap());
        for id in &self.holds {
            text += &format!("{:?}\n", store.hold(id).await.unwrap());
        }
        for id in &self.accounts {
            let days = DayRange::last_days(self.now, 60);
            // Stores number their entries as they like, and order those of one batch by their own row numbers.
            let activity = store.activity(id, u32::MAX).await.unwrap().into_iter();
            let mut activity: Vec<_> =
                activity.map(|entry| format!("{:?}", Activity { id: String::new(), ..entry })).collect();
            activity.sort_unstable();
            text += &format!("{:?}\n", store.account(id).await.unwrap());
            text += &format!("{:?}\n", store.open_holds(id, 9).await.unwrap());
            text += &format!("{:?}\n", store.account_daily_totals(id, days).await.unwrap());
            text += &format!("{:?}\n", store.usage_report(id, days).await.unwrap());
            text += &format!("{:?}\n", store.keys(id, None, 9, self.now.day()).await.unwrap().items);
            text += &(activity.join("\n") + "\n");
        }
        text + &format!("{:?}", store.verify().await.unwrap())
    }
}

/// Two accounts. The first has a key with a child key that has a budget, and a child of that with rate limits.
async fn world(seed: u64, stores: [&dyn Store; 2]) -> World {
    let (accounts, secrets, keys) = (Vec::new(), Vec::new(), Vec::new());
    let mut world =
        World { dice: Dice(seed), accounts, secrets, keys, holds: Vec::new(), receipts: Vec::new(), now: NOON };
    for number in [1, 2] {
        let new = NewAccount { key: KeyHash::from_bytes([number; 32]), entries: vec![grant(40)], ..new_account() };
        world.accounts.push(new.id.clone());
        world.secrets.push(new.key);
        for store in stores {
            store.create_account(new.clone()).await.unwrap();
        }
    }
    for number in [3, 4] {
        let secret = KeyHash::from_bytes([number; 32]);
        let mut terms = KeyTerms::new("made".parse().unwrap(), Scopes::ALL);
        if number == 3 {
            terms.budget = Some(Budget { limit: calls(25), reset: Some(BudgetReset::Daily) });
        } else {
            terms.limits = RateLimits::per_minute(4).and_per_day(30);
        }
        let (account, parent) = (world.accounts[0].clone(), world.keys.last().cloned());
        let new = NewKey { account, parent, secret, terms, max_keys: 9, created_at: NOON };
        for store in stores {
            store.create_key(new.clone()).await.unwrap();
        }
        let holder = stores[1].key_holder(&secret).await.unwrap().unwrap();
        world.keys.push(holder.chain[0].id.clone());
        world.secrets.push(secret);
    }
    world
}

/// Returns all outcomes.
async fn agree(seed: u64) -> String {
    let folder = fast_folder();
    let file: PathBuf = folder.path().join("metering.db");
    let open = || SqliteStore::open(&file).unwrap();
    let (mut handles, memory) = ([open(), open()], MemoryStore::new());
    let mut world = world(seed, [&handles[0], &memory]).await;
    let mut outcomes = String::new();
    for step in 0..70 {
        let context = format!("seed {seed}, step {step}");
        let store = &handles[usize::from(world.dice.one_in(3))];
        if world.dice.one_in(6) {
            world.other([store, &memory], &context).await;
        } else {
            outcomes += &world.batch([store, &memory], &context).await;
        }
        if step % 10 == 0 {
            let (found, expected) = (world.read(store).await, world.read(&memory).await);
            let different = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
            assert!(found == expected, "{context}: {different:#?}");
            assert_eq!(store.verify().await.unwrap().discrepancies, [], "{context}");
        }
        if world.dice.one_in(6) {
            let seconds = world.dice.choose(&[1, 20, 60, 4_000, 50_000, 100_000]);
            world.now = world.now.saturating_add(Duration::from_secs(seconds));
        }
        if world.dice.one_in(20) {
            // When the last handle is closed, everything is folded.
            drop(handles);
            handles = [open(), open()];
        }
    }
    outcomes
}

#[tokio::test]
async fn random_holds_do_what_they_do_in_memory() {
    let mut outcomes = String::new();
    for seed in 0..60 {
        outcomes += &agree(seed).await;
    }
    let expected = [
        "hold: Some(Held",
        "reason: Report",
        "reason: NoReport",
        "reason: Release",
        "reason: Expiry",
        "changed: false",
        "Hold(None)",
        "repeated: true",
        "OtherRequest",
        "Repeated(",
        "KeyBudget",
        "RateLimited",
        "InsufficientCredits",
        "Refunded(Some(",
        "Settled",
    ];
    let missing: Vec<_> = expected.iter().filter(|outcome| !outcomes.contains(**outcome)).collect();
    assert!(missing.is_empty(), "the operations never led to {missing:?}");
}
