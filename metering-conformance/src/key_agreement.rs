//! Random operations on keys, by alternating openers of one database, have the same results as on the memory store.

use std::sync::Arc;
use std::time::Duration;

use metering_core::access::{Budget, BudgetReset, KeyHash, KeyId, KeyTerms, Scope, Scopes};
use metering_core::charging::{Outcome, Posting};
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::store::{Created, KeyChange, NewKey, TermsChange};
use metering_core::usage::{Activity, DayRange};
use metering_core::{
    AccountId, Charge, ClientSource, Credits, Day, Decision, MemoryStore, NewAccount, RateLimits, Store, StoreError,
    Timestamp, UsageLine,
};

use super::scene::NOON;

const STEPS: usize = 220;
const ACCOUNTS: u8 = 2;
const SECRETS: u8 = 40;

/// A linear congruential generator: the operations only have to differ, and to be the same each time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()].clone()
    }

    fn account(&mut self) -> AccountId {
        account(u8::try_from(self.below(ACCOUNTS.into())).unwrap())
    }

    fn secret(&mut self) -> KeyHash {
        secret(u8::try_from(self.below(SECRETS.into())).unwrap())
    }

    fn terms(&mut self) -> KeyTerms {
        let scopes = [Scopes::ALL, Scopes::ALL, Scopes::default(), Scopes::of([Scope::Call, Scope::Manage]).unwrap()];
        KeyTerms {
            scopes: self.of(&scopes),
            routes: self.of(&["", "", "/a", "GET /a\n/b/*"]).parse().unwrap(),
            networks: self.of(&["", "", "", "10.0.0.0/8"]).parse().unwrap(),
            disabled: self.below(12) == 0,
            limits: RateLimits::per_minute(self.of(&[0, 0, 0, 3])).and_per_day(self.of(&[0, 0, 20])),
            max_in_flight: self.of(&[0, 0, 5]),
            budget: self.of(&[None, None, Some(Credits::from_atoms(30)), Some(Credits::from_atoms(90))]).map(|limit| {
                let reset = self.of(&[None, Some(BudgetReset::Daily), Some(BudgetReset::Weekly)]);
                Budget { limit, reset }
            }),
            ..KeyTerms::new(self.of(&["one", "two", "Drei"]).parse().unwrap(), Scopes::ALL)
        }
    }

    fn change(&mut self) -> TermsChange {
        TermsChange {
            name: self.of(&[None, Some("renamed".parse().unwrap())]),
            scopes: self.of(&[None, None, Some(Scopes::ALL), Some(Scopes::default())]),
            routes: self.of(&[None, None, Some("/a".parse().unwrap()), Some("".parse().unwrap())]),
            networks: self.of(&[None, None, None, Some("10.0.0.0/8".parse().unwrap()), Some("".parse().unwrap())]),
            expires_at: self.of(&[None, None, Some(None), Some(Some(NOON.saturating_add(DAY * 20)))]),
            disabled: self.of(&[None, Some(false), Some(false), Some(true)]),
            requests_per_minute: self.of(&[None, Some(0), Some(4)]),
            limit: self.of(&[None, Some(None), Some(Some(Credits::from_atoms(60)))]),
            limit_reset: self.of(&[None, Some(None), Some(Some(BudgetReset::Weekly))]),
            ..TermsChange::default()
        }
    }
}

const DAY: Duration = Duration::from_secs(86_400);

fn account(number: u8) -> AccountId {
    format!("org_{number:020}").parse().unwrap()
}

fn secret(number: u8) -> KeyHash {
    KeyHash::from_bytes([number; 32])
}

/// One operation.
#[derive(Debug, Clone)]
enum Operation {
    Create(NewKey),
    Change(AccountId, KeyId, Option<KeyId>, KeyChange),
    Leaked(KeyHash),
    Replace(AccountId, KeyHash),
    ReplaceLive(KeyHash, KeyHash),
    Charge(Vec<Charge>),
    RefundCharge(Charge),
}

fn operation(draw: &mut Draw, ids: &[KeyId], now: Timestamp) -> Operation {
    match draw.below(20) {
        0..4 => Operation::Create(NewKey {
            account: draw.account(),
            parent: if draw.below(4) == 0 { None } else { Some(draw.of(ids)) },
            secret: draw.secret(),
            terms: draw.terms(),
            max_keys: 12,
            created_at: now,
        }),
        4..8 => {
            let change = match draw.below(8) {
                0..5 => KeyChange::Terms(Box::new(draw.change())),
                5..7 => {
                    let old_until = draw.of(&[None, Some(now.saturating_add(DAY)), Some(now)]);
                    KeyChange::Rotate { secret: draw.secret(), old_until }
                }
                _ => KeyChange::Revoke,
            };
            let actor = if draw.below(2) == 0 { None } else { Some(draw.of(ids)) };
            Operation::Change(draw.account(), draw.of(ids), actor, change)
        }
        8 if draw.below(3) == 0 => Operation::Leaked(draw.secret()),
        9 if draw.below(6) == 0 => Operation::Replace(draw.account(), draw.secret()),
        10 => Operation::ReplaceLive(draw.secret(), draw.secret()),
        11 | 12 => Operation::RefundCharge(charge(draw)),
        _ => Operation::Charge((0..6).map(|_| charge(draw)).collect()),
    }
}

fn charge(draw: &mut Draw) -> Charge {
    let route = draw.of(&["/a", "/a", "/b/{c}", "/d"]);
    let line = UsageLine { route_template: route.into(), http_method: "GET".into(), source: ClientSource::Direct };
    Charge::of(draw.secret(), Credits::from_atoms(i64::try_from(draw.below(9)).unwrap()), line)
        .with_path(route)
        .with_address(draw.of(&[None, "10.1.1.1".parse().ok(), "192.0.2.1".parse().ok()]))
}

/// Everything that the caller sees, as text.
async fn run(store: &dyn Store, operation: Operation, now: Timestamp) -> Result<String, String> {
    let failed = |error: StoreError| error.to_string();
    Ok(match operation {
        Operation::Create(new) => format!("{:?}", store.create_key(new).await.map_err(failed)?),
        Operation::Change(account, id, actor, change) => {
            let changed = store.change_key(&account, &id, actor.as_ref(), change, now).await;
            format!("{:?}", changed.map_err(failed)?)
        }
        Operation::Leaked(secret) => format!("{:?}", store.report_leaked(&secret, now).await.map_err(failed)?),
        Operation::Replace(account, secret) => {
            format!("{:?}", store.replace_key(&account, secret, now).await.map_err(failed)?)
        }
        Operation::ReplaceLive(old, new) => {
            format!("{:?}", store.replace_live_key(&old, new, now).await.map_err(failed)?)
        }
        Operation::Charge(charges) => {
            let postings = charges.into_iter().map(Posting::Charge).collect();
            format!("{:?}", store.commit(postings, now).await.map_err(failed)?)
        }
        Operation::RefundCharge(charge) => {
            let outcome = store.commit(vec![Posting::Charge(charge)], now).await.map_err(failed)?.remove(0);
            let Outcome::Decided(Decision::Accepted(receipt)) = outcome else { return Ok(format!("{outcome:?}")) };
            let Some(refund) = receipt.into_refund() else { return Ok("free".to_owned()) };
            format!("{:?}", store.commit(vec![Posting::Refund(refund)], now).await.map_err(failed)?)
        }
    })
}

/// Everything that can be read of keys, as text.
async fn state(store: &dyn Store, now: Timestamp) -> String {
    let secrets: Vec<KeyHash> = (0..SECRETS).map(secret).collect();
    let mut state = format!("{:?}\n", store.live_keys(&secrets, now).await.unwrap());
    for secret in &secrets {
        state += &format!("{:?}\n", store.key_holder(secret).await.unwrap());
    }
    for id in (0..ACCOUNTS).map(account) {
        let (mut after, mut pages) = (None, 0);
        while pages == 0 || after.is_some() {
            let page = store.keys(&id, after.as_ref(), 4, now.day()).await.unwrap();
            state += &format!("{:?}\n", page.items);
            (after, pages) = (page.next, pages + 1);
        }
        for label in store.key_labels(&id).await.unwrap() {
            state += &format!("{label:?} {:?}\n", store.key(&id, &label.id, now.day()).await.unwrap());
        }
        let days = DayRange { first: Day::from_unix_days(0), last: now.day() };
        state += &format!("{:?}\n", store.usage_report(&id, days).await.unwrap());
        state += &format!("{:?}\n", store.account_daily_totals(&id, days).await.unwrap());
        // Within a batch, the order of entries depends on the store.
        let entries = store.activity(&id, 1_000).await.unwrap().into_iter();
        let mut entries: Vec<_> =
            entries.map(|entry| format!("{:?}", Activity { id: String::new(), ..entry })).collect();
        entries.sort_unstable();
        state += &format!("{entries:?}\n");
    }
    state + &format!("{:?}", store.verify().await.unwrap())
}

/// Runs random operations on openers of one fresh database, each in turn, and on a memory store, and compares every
/// result and everything that can be read of keys.
///
/// # Panics
/// At the first difference, or when `openers` is empty.
pub async fn openers_agree_on_keys(openers: &[Arc<dyn Store>], seed: u64) {
    let memory = MemoryStore::new();
    let (mut draw, mut now, mut ids) = (Draw(seed), NOON, Vec::new());
    for number in 0..ACCOUNTS {
        let mut new = NewAccount::new(account(number), "agent".parse().unwrap(), secret(number), NOON);
        new.limits = RateLimits::NONE;
        new.entries = vec![NewLedgerEntry::new(LedgerKind::Adjustment, Credits::from_atoms(100_000), "Grant")];
        for store in [&memory as &dyn Store, &*openers[0]] {
            assert!(matches!(store.create_account(new.clone()).await.unwrap(), Created::Account(_)));
        }
        ids.push(KeyId::of_first(&secret(number)));
    }
    let mut created = 0;
    for step in 0..STEPS {
        let operation = operation(&mut draw, &ids, now);
        let opener = draw.of(openers);
        let (expected, found) =
            (run(&memory, operation.clone(), now).await, run(&*opener, operation.clone(), now).await);
        assert_eq!(found, expected, "seed {seed}, step {step}: {operation:?}");
        if let (Operation::Create(new), Ok(outcome)) = (&operation, &expected)
            && outcome.starts_with("Key(")
        {
            ids.push(KeyId::of_first(&new.secret));
            created += 1;
        }
        if step % 20 == 19 {
            let (found, expected) = (state(&*opener, now).await, state(&memory, now).await);
            for (found, expected) in found.lines().zip(expected.lines()) {
                assert_eq!(found, expected, "seed {seed}, step {step}");
            }
            assert_eq!(found.len(), expected.len());
        }
        now = now.saturating_add(Duration::from_secs(draw.of(&[0, 1, 30, 3_600, 40_000])));
    }
    assert!(created > 0, "seed {seed}: no key was created");
}
