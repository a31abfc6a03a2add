//! A database with accounts that can pay for any number of charges.

use std::fs;
use std::path::{Path, PathBuf};

use metering_core::{
    Account, AccountId, ApiKey, Clock, Created, Credits, LedgerKind, NewAccount, NewLedgerEntry, RateLimits, Store,
    SystemClock, SystemRandomness,
};
use metering_sqlite::SqliteStore;
use tempfile::TempDir;

use super::Failure;

/// A database file in a directory of its own, which is removed with this value.
#[derive(Debug)]
pub(super) struct Populated {
    directory: TempDir,
    /// Its accounts and their keys, in the order of their making.
    pub(super) accounts: Vec<(AccountId, ApiKey)>,
}

impl Populated {
    const FILE: &'static str = "metering.db";

    /// Makes a database with so many accounts, of which none has a cap.
    ///
    /// Through the store, as an operator would: each account is a transaction of its own.
    pub(super) async fn make(data_dir: &Path, count: usize) -> Result<Self, Failure> {
        let directory = tempfile::Builder::new().prefix("metering-bench-").tempdir_in(data_dir)?;
        let mut populated = Self { directory, accounts: Vec::with_capacity(count) };
        let store = populated.open()?;
        for _ in 0..count {
            let key = ApiKey::generate(&SystemRandomness);
            let account = make_account(&store, &key).await?;
            populated.accounts.push((account.id, key));
        }
        Ok(populated)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().join(Self::FILE)
    }

    pub(super) fn open(&self) -> Result<SqliteStore, Failure> {
        Ok(SqliteStore::open(&self.path())?)
    }

    /// The size of all its files.
    pub(super) fn bytes(&self) -> Result<u64, Failure> {
        let mut bytes = 0;
        for file in fs::read_dir(self.directory.path())? {
            bytes += file?.metadata()?.len();
        }
        Ok(bytes)
    }
}

async fn make_account(store: &dyn Store, key: &ApiKey) -> Result<Account, Failure> {
    // More than any run can spend.
    let amount = Credits::from_whole(1_000_000_000).ok_or("a billion credits are too many")?;
    let bonus =
        NewLedgerEntry { kind: LedgerKind::SignupBonus, amount, description: "Credits to measure with".to_owned() };
    let new = NewAccount {
        id: AccountId::generate(&SystemRandomness),
        agent_name: "bench".parse()?,
        email: None,
        payer_address: None,
        limits: RateLimits { requests_per_minute: 0, requests_per_day: 0 },
        key: key.hash(),
        entries: vec![bonus],
        created_at: SystemClock.now(),
    };
    match store.create_account(new).await? {
        Created::Account(account) => Ok(account),
        refusal => Err(format!("an account could not be made: {refusal:?}").into()),
    }
}

/// Fails unless every account's money adds up: a benchmark of wrong work is worth nothing.
pub(super) async fn verify(store: &dyn Store) -> Result<(), Failure> {
    let verification = store.verify().await?;
    match verification.discrepancies.first() {
        None => Ok(()),
        Some(first) => Err(format!("the money does not add up: {first:?}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn accounts_can_pay_and_their_keys_are_live() {
        let populated = Populated::make(&std::env::temp_dir(), 3).await.unwrap();
        let store = populated.open().unwrap();
        for (id, key) in &populated.accounts {
            let account = store.account_by_key(&key.hash()).await.unwrap().unwrap();
            assert_eq!(account.id, *id);
            assert!(account.totals.balance.is_positive());
        }
        verify(&store).await.unwrap();
        assert!(populated.bytes().unwrap() > 0);
        let path = populated.path();
        drop((store, populated));
        assert!(!path.exists());
    }
}
