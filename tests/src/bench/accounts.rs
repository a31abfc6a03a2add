//! A database with accounts that can pay for any number of charges.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::store::{Created, in_transaction};
use metering_core::{
    Account, AccountId, ApiKey, Clock, Credits, NewAccount, RateLimits, Store, SystemClock, SystemRandomness,
};
use metering_sqlite::SqliteStore;
use tempfile::TempDir;

use super::random::{SEED, SplitMix64};
use super::{Failure, interrupt};

/// How many accounts are created in one transaction.
const TOGETHER: usize = 1_000;

/// A database file in its own data folder, which is deleted on drop.
#[derive(Debug)]
pub(super) struct Populated {
    folder: TempDir,
    /// The accounts and their keys, in creation order.
    pub(super) accounts: Vec<(AccountId, ApiKey)>,
}

impl Populated {
    /// The name that a server gives its database in its data folder.
    const FILE: &'static str = "metering.db";

    /// Creates a database with `count` accounts without caps.
    pub(super) async fn make(data_dir: &Path, count: usize) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("metering-bench-").tempdir_in(data_dir)?;
        let mut populated = Self { folder, accounts: Vec::with_capacity(count) };
        populated.grow_to(count).await?;
        Ok(populated)
    }

    /// Creates accounts until there are `count`, and keeps the existing ones.
    ///
    /// They are created through the store, many in one transaction, so that a million take about a minute.
    pub(super) async fn grow_to(&mut self, count: usize) -> Result<(), Failure> {
        let store = self.open()?;
        while self.accounts.len() < count {
            interrupt::check()?;
            let more = TOGETHER.min(count - self.accounts.len());
            let keys: Vec<ApiKey> = (0..more).map(|_| ApiKey::generate(&SystemRandomness)).collect();
            let new = keys.iter().map(new_account).collect::<Result<Vec<NewAccount>, Failure>>()?;
            let created: Vec<Created> = in_transaction(&store, new, |store, new| {
                Box::pin(async move {
                    let mut created = Vec::with_capacity(new.len());
                    for new in new {
                        created.push(store.create_account(new.clone()).await?);
                    }
                    Ok(created)
                })
            })
            .await?;
            for (created, key) in created.into_iter().zip(keys) {
                self.accounts.push((account(created)?.id, key));
            }
        }
        Ok(())
    }

    /// A copy of its files in their own folder, for another server to charge. It has no list of accounts.
    pub(super) fn duplicate(&self, data_dir: &Path) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("metering-bench-").tempdir_in(data_dir)?;
        for file in fs::read_dir(self.folder())? {
            let file = file?;
            fs::copy(file.path(), folder.path().join(file.file_name()))?;
        }
        Ok(Self { folder, accounts: Vec::new() })
    }

    /// One request per key, in an order unrelated to their creation.
    pub(super) fn requests(&self, request_with: impl Fn(&str) -> Vec<u8>) -> Arc<[Vec<u8>]> {
        let mut requests: Vec<_> = self.accounts.iter().map(|(_, key)| request_with(key.expose())).collect();
        SplitMix64::new(SEED).shuffle(&mut requests);
        requests.into()
    }

    /// The data folder to start a server on.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder().join(Self::FILE)
    }

    pub(super) fn open(&self) -> Result<SqliteStore, Failure> {
        Ok(SqliteStore::open(&self.path())?)
    }

    /// The size of all its files.
    pub(super) fn bytes(&self) -> Result<u64, Failure> {
        let mut bytes = 0;
        for file in fs::read_dir(self.folder())? {
            bytes += file?.metadata()?.len();
        }
        Ok(bytes)
    }
}

fn new_account(key: &ApiKey) -> Result<NewAccount, Failure> {
    // More than any run can spend.
    let amount = Credits::from_whole(1_000_000_000).ok_or("a billion credits are too many")?;
    let bonus = NewLedgerEntry::new(LedgerKind::SignupBonus, amount, "Credits to measure with");
    Ok(NewAccount {
        id: AccountId::generate(&SystemRandomness),
        agent_name: "bench".parse()?,
        email: None,
        email_status: metering_core::access::EmailStatus::Unchecked,
        payer: None,
        limits: RateLimits::NONE,
        key: key.hash(),
        entries: vec![bonus],
        created_at: SystemClock.now(),
    })
}

fn account(created: Created) -> Result<Account, Failure> {
    match created {
        Created::Account(account) => Ok(account),
        refusal => Err(format!("could not create an account: {refusal:?}").into()),
    }
}

/// Checks that all accounts' money adds up, and returns how many accepted requests they have on record in all. Figures
/// for wrong work are worthless.
pub(super) async fn verified_calls(store: &dyn Store) -> Result<u64, Failure> {
    const PAGE: u32 = 10_000;
    let verification = store.verify().await?;
    if let Some(first) = verification.discrepancies.first() {
        return Err(format!("the money does not add up: {first:?}").into());
    }
    let (mut calls, mut after) = (0, None);
    loop {
        let page = store.daily_totals(after.as_ref(), PAGE).await?;
        calls += page.items.iter().map(|total| total.calls).sum::<u64>();
        after = page.next;
        if after.is_none() {
            return Ok(calls);
        }
    }
}

/// Fails unless the number of recorded calls equals the number of accepted responses.
pub(super) fn require_recorded(recorded: u64, accepted: u64) -> Result<(), Failure> {
    if recorded == accepted {
        return Ok(());
    }
    Err(format!("{accepted} requests were accepted, but {recorded} are on record").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn accounts_have_credits_and_working_keys() {
        let populated = Populated::make(&std::env::temp_dir(), 3).await.unwrap();
        let store = populated.open().unwrap();
        for (id, key) in &populated.accounts {
            let account = store.account_by_key(&key.hash()).await.unwrap().unwrap();
            assert_eq!(account.id, *id);
            assert!(account.totals.balance.is_positive());
        }
        assert_eq!(verified_calls(&store).await.unwrap(), 0);
        assert!(populated.bytes().unwrap() > 0);
        let path = populated.path();
        drop((store, populated));
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_copy_has_the_same_accounts() {
        let populated = Populated::make(&std::env::temp_dir(), 2).await.unwrap();
        let copy = populated.duplicate(&std::env::temp_dir()).unwrap();
        assert_ne!(copy.folder(), populated.folder());
        assert_eq!(copy.open().unwrap().verify().await.unwrap().accounts, 2);
    }

    #[tokio::test]
    async fn each_key_has_one_request_in_shuffled_order() {
        let populated = Populated::make(&std::env::temp_dir(), 50).await.unwrap();
        let mut requests = populated.requests(|key| key.as_bytes().to_vec()).to_vec();
        let in_order: Vec<_> = populated.accounts.iter().map(|(_, key)| key.expose().as_bytes().to_vec()).collect();
        assert_ne!(requests, in_order);
        requests.sort_by_key(|request| in_order.iter().position(|other| other == request));
        assert_eq!(requests, in_order);
    }

    #[tokio::test]
    async fn growing_keeps_existing_accounts() {
        let mut populated = Populated::make(&std::env::temp_dir(), 2).await.unwrap();
        let had = populated.accounts.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
        populated.grow_to(5).await.unwrap();
        populated.grow_to(4).await.unwrap();
        let has = populated.accounts.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
        assert_eq!((has.len(), &has[..2]), (5, &had[..]));
        assert_eq!(populated.open().unwrap().verify().await.unwrap().accounts, 5);
    }

    #[test]
    fn a_call_that_is_not_on_record_is_an_error() {
        assert!(require_recorded(7, 7).is_ok());
        for (recorded, accepted) in [(6, 7), (8, 7), (0, 1)] {
            let error = require_recorded(recorded, accepted).unwrap_err().to_string();
            assert!(error.contains(&format!("{recorded} are on record")), "{error}");
        }
    }
}
