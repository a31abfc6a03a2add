//! Contracts for accounts of other services: their keys work, their balances are exact, and a repeated import changes
//! nothing.

use metering_core::access::{ApiKey, Budget, EmailStatus, HashKind, KeyHash, KeyTerms, Payer, Scopes};
use metering_core::clock::Day;
use metering_core::imports::{
    AccountImported, ImportConflict, ImportMode, ImportedAccount, ImportedEntry, ImportedKey, ImportedSecret,
    ImportedUsage, UsedTransaction,
};
use metering_core::money::{LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::payments::{PaymentSettlement, PaymentUse};
use metering_core::store::{FullStore, KeyChange, KeyChanged, PaymentCredited};

use super::sale::{credit, payment_by, tx, wallet};
use super::scene::{
    BASE, DAY, NOON, Verified, accepted, account, all_daily_totals, atoms, charge, create, customer, entry, line,
    new_account, new_id, new_key, racing, totals,
};

/// A key of the service that is imported from.
fn foreign_key(number: u8) -> ApiKey {
    ApiKey::parse(&format!("sk_live_{}", hex::encode([number; 48]))).unwrap()
}

fn secret(hash: KeyHash) -> ImportedSecret {
    ImportedSecret { hash, hash_kind: HashKind::Sha256, expires_at: None }
}

/// An account that bought 10 base calls a month ago and used 3 on each of two days.
fn foreign(number: u8) -> ImportedAccount {
    let created_at = NOON.saturating_sub(DAY * 30);
    let paid = NewLedgerEntry {
        payment: Some(PaymentRef { tx: tx(number), plan_id: Some("starter".to_owned()) }),
        ..entry(LedgerKind::PurchaseImported, 10 * BASE)
    };
    let usage = |days: u32| ImportedUsage {
        day: NOON.day().minus_days(days),
        line: line("/old"),
        calls: 3,
        credits_used: atoms(3 * BASE),
    };
    ImportedAccount {
        id: new_id(),
        agent_name: "moved".parse().unwrap(),
        email: Some(format!("Moved{number}@example.com").parse().unwrap()),
        email_status: EmailStatus::Verified { at: created_at },
        payer: Some(Payer { address: wallet(number), chain_id: 8453 }),
        limits: metering_core::RateLimits::NONE,
        tokens_per_minute: 30_000,
        keys: vec![ImportedKey::first(secret(foreign_key(number).hash()), created_at)],
        entries: vec![
            ImportedEntry { entry: paid, created_at },
            ImportedEntry { entry: entry(LedgerKind::Adjustment, -1), created_at: NOON },
        ],
        usage: vec![usage(20), usage(10)],
        used_transactions: vec![UsedTransaction { tx: tx(number), credited_at: created_at }],
        created_at,
        revoked_at: None,
    }
}

async fn import(store: &dyn FullStore, new: &ImportedAccount) -> AccountImported {
    let mut outcomes = store.import_accounts(vec![new.clone()], ImportMode::Write, NOON).await.unwrap();
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0)
}

async fn imported(store: &dyn FullStore, new: &ImportedAccount) -> Vec<ImportConflict> {
    match import(store, new).await {
        AccountImported::Created { conflicts, .. } => conflicts,
        refusal => panic!("{refusal:?}"),
    }
}

/// An imported account is found with all given fields, and its balance is exact.
pub async fn imported_account_is_found_as_it_was(store: Verified<dyn FullStore>) {
    let store = store.as_ref();
    let new = foreign(1);
    assert_eq!(imported(store, &new).await, []);
    let found = account(store, &new.id).await;
    assert_eq!((&found.agent_name, found.email_status, found.payer), (&new.agent_name, new.email_status, new.payer));
    assert_eq!(found.email.as_ref().map(ToString::to_string).as_deref(), Some("Moved1@example.com"));
    assert_eq!((found.created_at, found.revoked_at), (new.created_at, None));
    let sums = totals(store, &new.id).await;
    let atoms_of = [sums.balance, sums.purchased, sums.granted, sums.used, sums.held].map(|sum| sum.atoms());
    assert_eq!(atoms_of, [4 * BASE - 1, 10 * BASE, -1, 6 * BASE, 0]);
    let ledger = store.account_ledger(&new.id, None, 10).await.unwrap().items;
    let written: Vec<_> = ledger.iter().map(|entry| (entry.kind, entry.amount, entry.created_at)).collect();
    let given = new.entries.iter().map(|given| (given.entry.kind, given.entry.amount, given.created_at));
    assert_eq!(written, given.collect::<Vec<_>>());
    assert_eq!(ledger[0].payment, new.entries[0].entry.payment);
    let days: Vec<Day> = all_daily_totals(store).await.iter().map(|total| total.day).collect();
    assert_eq!(days, new.usage.iter().map(|usage| usage.day).collect::<Vec<_>>());
    assert_eq!(store.activity(&new.id, 10).await.unwrap().len(), 2);
}

/// A key of the other service works, and its first rotation replaces it with one of ours.
pub async fn imported_key_works_until_it_is_rotated(store: Verified<dyn FullStore>) {
    let store = store.as_ref();
    let (new, old) = (foreign(1), foreign_key(1));
    imported(store, &new).await;
    assert_eq!(accepted(store, charge(old.hash(), BASE), NOON).await.balance.atoms(), 3 * BASE - 1);
    let [secret] = &store.key_secrets(&new.id).await.unwrap()[..] else { panic!("there is one secret") };
    assert_eq!((secret.hash, secret.hash_kind), (old.hash(), HashKind::Sha256));
    let holder = store.key_holder(&old.hash()).await.unwrap().unwrap();
    let (rotated, key) = (new_key(), holder.chain[0].id.clone());
    let change = KeyChange::Rotate { secret: rotated, old_until: None };
    let changed = store.change_key(&new.id, &key, None, change, NOON).await.unwrap();
    assert!(matches!(changed, KeyChanged::Key(_)), "{changed:?}");
    assert_eq!(store.live_keys(&[old.hash(), rotated], NOON).await.unwrap(), [false, true]);
    let [secret] = &store.key_secrets(&new.id).await.unwrap()[..] else { panic!("there is one secret") };
    assert_eq!((secret.hash, secret.hash_kind), (rotated, HashKind::Sha3));
    assert_eq!(accepted(store, charge(rotated, BASE), NOON).await.balance.atoms(), 2 * BASE - 1);
}

/// Importing an account again changes nothing, also after it was used and rotated.
pub async fn repeated_import_changes_nothing(store: Verified<dyn FullStore>) {
    let store = store.as_ref();
    let new = foreign(1);
    imported(store, &new).await;
    accepted(store, charge(foreign_key(1).hash(), BASE), NOON).await;
    store.replace_key(&new.id, new_key(), NOON).await.unwrap();
    let before = account(store, &new.id).await;
    assert_eq!(import(store, &new).await, AccountImported::AlreadyThere(before.clone()));
    assert_eq!(account(store, &new.id).await, before);
    let both = store.import_accounts(vec![foreign(2), new.clone()], ImportMode::Write, NOON).await.unwrap();
    assert!(matches!(&both[..], [AccountImported::Created { .. }, AccountImported::AlreadyThere(_)]), "{both:?}");
}

/// An account of another id with the same key hash, or of the same id with another hash, is refused.
pub async fn used_ids_and_hashes_are_refused(store: Verified<dyn FullStore>) {
    let store = store.as_ref();
    let own = customer(store, 7).await;
    let first = foreign(1);
    imported(store, &first).await;
    let same_hash = ImportedAccount { keys: first.keys.clone(), ..foreign(2) };
    assert_eq!(import(store, &same_hash).await, AccountImported::KeyInUse(first.id.clone()));
    let own_hash = ImportedAccount { keys: vec![ImportedKey::first(secret(own.key), NOON)], ..foreign(2) };
    assert_eq!(import(store, &own_hash).await, AccountImported::KeyInUse(own.id.clone()));
    let same_id = ImportedAccount { id: own.id.clone(), ..foreign(2) };
    assert_eq!(import(store, &same_id).await, AccountImported::IdInUse);
    let holder = store.key_holder(&foreign_key(1).hash()).await.unwrap().unwrap();
    let key_id = holder.chain[0].id.clone();
    let mut same_key_id = foreign(2);
    same_key_id.keys[0].id = Some(key_id.clone());
    assert_eq!(import(store, &same_key_id).await, AccountImported::KeyIdInUse(key_id));
    let mut too_much = foreign(2);
    too_much.entries.push(ImportedEntry { entry: entry(LedgerKind::Adjustment, i64::MAX), created_at: NOON });
    assert_eq!(import(store, &too_much).await, AccountImported::OutOfRange);
    assert_eq!(store.accounts(None, 10).await.unwrap().items.len(), 2);
}

/// Email address, wallet and transaction stay with the account that has them; the credits are imported.
pub async fn what_another_account_has_is_left_out(store: Verified<dyn FullStore>) {
    let store = store.as_ref();
    let email = "MOVED1@example.com".parse().unwrap();
    let owner = create(store, metering_core::NewAccount { email: Some(email), ..new_account() }).await;
    let first = foreign(1);
    let conflicts = imported(store, &first).await;
    assert_eq!(conflicts, [ImportConflict::EmailTaken("moved1@example.com".parse().unwrap())]);
    let second = ImportedAccount {
        payer: first.payer,
        entries: first.entries.clone(),
        used_transactions: first.used_transactions.clone(),
        ..foreign(2)
    };
    let conflicts = imported(store, &second).await;
    let expected = [ImportConflict::PayerTaken(wallet(1)), ImportConflict::TransactionUsed(tx(1), first.id.clone())];
    assert_eq!(conflicts, expected);
    let found = account(store, &second.id).await;
    assert_eq!((found.payer, found.totals.balance.atoms()), (None, 4 * BASE - 1));
    assert_eq!(account(store, &first.id).await.email, None);
    assert_eq!(store.payment(&tx(1)).await.unwrap().unwrap().account, first.id);
    assert_eq!(account(store, &owner.id).await, owner);
}

/// A revoked account takes no email address or wallet from others, and its key does not work.
pub async fn revoked_accounts_are_imported_revoked(store: Verified<dyn FullStore>) {
    let store = store.as_ref();
    let live = foreign(1);
    imported(store, &live).await;
    let revoked = ImportedAccount {
        email: live.email.clone(),
        payer: live.payer,
        revoked_at: Some(NOON.saturating_sub(DAY)),
        ..foreign(2)
    };
    assert_eq!(imported(store, &revoked).await, []);
    let found = account(store, &revoked.id).await;
    assert_eq!((found.revoked_at, &found.email, found.payer), (revoked.revoked_at, &revoked.email, live.payer));
    let keys = [foreign_key(1).hash(), foreign_key(2).hash()];
    assert_eq!(store.live_keys(&keys, NOON).await.unwrap(), [true, false]);
    let secrets = store.key_secrets(&revoked.id).await.unwrap();
    let secrets: Vec<_> = secrets.iter().map(|secret| (secret.hash, secret.revoked_at)).collect();
    assert_eq!(secrets, [(foreign_key(2).hash(), revoked.revoked_at)], "an export has them");
    assert_eq!(import(store, &revoked).await, AccountImported::AlreadyThere(found));
    let third = ImportedAccount { email: revoked.email.clone(), payer: None, ..foreign(3) };
    assert_eq!(imported(store, &third).await.len(), 1, "the live account has the address");
}

/// A transaction that was credited at the source is not credited again.
pub async fn imported_transactions_are_used_up(store: Verified<dyn FullStore>) {
    let store = store.as_ref();
    let (new, other) = (foreign(1), customer(store, 0).await);
    imported(store, &new).await;
    let record = store.payment(&tx(1)).await.unwrap().unwrap();
    assert_eq!((&record.account, record.used_as), (&new.id, PaymentUse::Imported));
    assert_eq!((record.settlement, record.plan_id.as_deref()), (PaymentSettlement::Final, Some("starter")));
    let again = store.credit_payment(credit(&other.id, payment_by(1, tx(1)))).await.unwrap();
    assert_eq!(again, PaymentCredited::TxUsed);
    let again = store.credit_payment(credit(&new.id, payment_by(1, tx(1)))).await.unwrap();
    assert!(matches!(again, PaymentCredited::Repeated(..)), "{again:?}");
    assert_eq!(totals(store, &new.id).await.balance.atoms(), 4 * BASE - 1);
}

/// Child keys of the first one keep their terms, and budgets count what was imported.
pub async fn imported_keys_keep_their_terms(store: Verified<dyn FullStore>) {
    let store = store.as_ref();
    let mut new = foreign(1);
    new.keys[0].terms.budget = Some(Budget { limit: atoms(8 * BASE), reset: None });
    let below = KeyTerms { max_in_flight: 3, ..KeyTerms::new("below".parse().unwrap(), Scopes::default()) };
    let (created_at, hash) = (new.created_at, foreign_key(2).hash());
    for (parent, number) in [(0, 2), (1, 3)] {
        new.keys.push(ImportedKey {
            id: None,
            parent: Some(parent),
            terms: below.clone(),
            created_at,
            leaked_at: None,
            secrets: vec![secret(foreign_key(number).hash())],
        });
    }
    imported(store, &new).await;
    let keys = store.keys(&new.id, None, 10, NOON.day()).await.unwrap().items;
    let parents: Vec<_> = keys.iter().map(|status| status.key.parent.map(|parent| parent.get())).collect();
    assert_eq!(parents, [None, Some(0), Some(1)]);
    assert_eq!((&keys[1].key.terms, &keys[2].key.terms), (&below, &below));
    assert_eq!((hash.hint().is_some(), keys[1].key.hint), (true, hash.hint()), "what is shown of its secret");
    assert_eq!(keys[0].spent.map(|spent| spent.amount.atoms()), Some(6 * BASE));
    accepted(store, charge(hash, 2 * BASE), NOON).await;
    super::scene::refused(store, charge(foreign_key(3).hash(), BASE), NOON).await;
}

/// A check writes nothing, and reports what an import would do.
pub async fn checking_an_import_writes_nothing(store: Verified<dyn FullStore>) {
    let store = store.as_ref();
    let (first, second) = (foreign(1), ImportedAccount { payer: Some(foreign(1).payer.unwrap()), ..foreign(2) });
    imported(store, &first).await;
    let checked = vec![first.clone(), second.clone()];
    let checked = store.import_accounts(checked, ImportMode::Check, NOON).await.unwrap();
    let [AccountImported::AlreadyThere(_), AccountImported::Created { account, conflicts }] = &checked[..] else {
        panic!("{checked:?}")
    };
    assert_eq!((&account.id, &conflicts[..]), (&second.id, &[ImportConflict::PayerTaken(wallet(1))][..]));
    assert_eq!(store.account(&second.id).await.unwrap(), None);
    assert_eq!(store.live_keys(&[foreign_key(2).hash()], NOON).await.unwrap(), [false]);
}

/// Two imports of the same accounts create each once.
pub async fn concurrent_imports_create_each_account_once(store: Verified<dyn FullStore>) {
    let accounts: Vec<_> = (1..=6).map(foreign).collect();
    let results = racing(&store, 0..4, |store, turn| {
        let mut accounts = accounts.clone();
        accounts.rotate_left(turn);
        async move {
            let mut created = 0;
            for pair in accounts.chunks(2) {
                let outcomes = store.import_accounts(pair.to_vec(), ImportMode::Write, NOON).await.unwrap();
                for outcome in outcomes {
                    match outcome {
                        AccountImported::Created { conflicts, .. } if conflicts.is_empty() => created += 1,
                        AccountImported::AlreadyThere(_) => {}
                        other => panic!("{other:?}"),
                    }
                }
            }
            created
        }
    })
    .await;
    let created: usize = results.into_iter().sum();
    assert_eq!(created, accounts.len());
    let found = store.accounts(None, 100).await.unwrap().items;
    assert_eq!(found.len(), accounts.len());
    assert!(found.iter().all(|account| account.totals.balance.atoms() == 4 * BASE - 1));
}
