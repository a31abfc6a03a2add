//! Accounts with the hashes of their keys: everything that another service needs to take them over.

use std::collections::BTreeSet;

use metering_core::access::{EmailStatus, Key, SecretRecord};
use metering_core::imports::UsedTransaction;
use metering_core::store::{Cursor, Page};
use metering_core::{Account, Clock, FullStore, StoreError, SystemClock};
use metering_import::{keys_as_json, used_as_json};

use super::columns::{Exported, Value};

/// How many keys or ledger entries are read at a time.
const PAGE: u32 = 1_000;

/// An account, its keys that are not revoked, and the transactions that it was credited for.
#[derive(Debug)]
pub(crate) struct HashedAccount {
    pub(crate) account: Account,
    keys: Vec<Key>,
    secrets: Vec<SecretRecord>,
    used: Vec<UsedTransaction>,
}

/// A page of accounts with their keys.
pub(crate) async fn page(store: &dyn FullStore, page: Page<Account>) -> Result<Page<HashedAccount>, StoreError> {
    let mut items = Vec::with_capacity(page.items.len());
    for account in page.items {
        let (keys, used) = (keys(store, &account).await?, used(store, &account).await?);
        let secrets = store.key_secrets(&account.id).await?;
        items.push(HashedAccount { account, keys, secrets, used });
    }
    Ok(Page { items, next: page.next })
}

async fn keys(store: &dyn FullStore, account: &Account) -> Result<Vec<Key>, StoreError> {
    let (mut keys, mut after): (Vec<Key>, Option<Cursor>) = (Vec::new(), None);
    loop {
        let page = store.keys(&account.id, after.as_ref(), PAGE, SystemClock.now().day()).await?;
        keys.extend(page.items.into_iter().map(|status| status.key));
        after = page.next;
        if after.is_none() {
            return Ok(keys);
        }
    }
}

async fn used(store: &dyn FullStore, account: &Account) -> Result<Vec<UsedTransaction>, StoreError> {
    let (mut used, mut seen, mut after) = (Vec::new(), BTreeSet::new(), None);
    loop {
        let page = store.account_ledger(&account.id, after.as_ref(), PAGE).await?;
        for entry in page.items {
            if let Some(payment) = entry.payment
                && seen.insert((payment.tx.chain_id, payment.tx.hash.to_string()))
            {
                used.push(UsedTransaction { tx: payment.tx, credited_at: entry.created_at });
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(used);
        }
    }
}

/// The keys of one account, and the remaining ones.
macro_rules! columns {
    ($($index:literal)*) => {
        &[
            $((Account::COLUMNS[$index].0, |row: &HashedAccount| (Account::COLUMNS[$index].1)(&row.account)),)*
            ("payer_chain_id", |row| row.account.payer.map_or(Value::Absent, |payer| Value::Unsigned(payer.chain_id))),
            ("email_verified_at", |row| match row.account.email_status {
                EmailStatus::Verified { at } => Value::Text(at.to_string()),
                _ => Value::Absent,
            }),
            ("email_credits_atoms", |row| match row.account.email_status {
                EmailStatus::Pending { free_credits } => Value::Signed(free_credits.atoms()),
                _ => Value::Absent,
            }),
            ("keys", |row| Value::Json(keys_as_json(&row.keys, &row.secrets))),
            ("used_transactions", |row| Value::Json(used_as_json(&row.used))),
        ]
    };
}

impl Exported for HashedAccount {
    const COLUMNS: &'static [super::columns::Column<Self>] =
        columns!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19);
}
