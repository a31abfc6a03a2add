//! Imported accounts in a memory store.

use async_trait::async_trait;

use crate::access::account::AccountId;
use crate::access::key::KeyHash;
use crate::clock::Timestamp;
use crate::decision::{self, Decided, ImportChanges, ImportFacts};
use crate::imports::{AccountImported, ImportMode, ImportedAccount};
use crate::store::{ImportStore, MemoryStore, StoreError};
use crate::transfer::SecretRecord;

use super::state::{DayTotal, Record, Secret, State, StoredKey};

#[async_trait]
impl ImportStore for MemoryStore {
    async fn import_accounts(
        &self,
        accounts: Vec<ImportedAccount>,
        mode: ImportMode,
        now: Timestamp,
    ) -> Result<Vec<AccountImported>, StoreError> {
        let mut state = self.state()?;
        let import = |new: ImportedAccount| {
            let facts = state.import_facts(&new);
            match decision::import_account(new, facts, now) {
                Decided::Accepted(changes) => state.write_import(*changes, mode),
                Decided::Refused(refusal) => refusal,
            }
        };
        Ok(accounts.into_iter().map(import).collect())
    }

    async fn key_secrets(&self, account: &AccountId) -> Result<Vec<SecretRecord>, StoreError> {
        let state = self.state()?;
        let Some((row, found)) = state.found(account) else { return Ok(Vec::new()) };
        let live = state.keys.iter().filter(|(_, secret)| secret.account == row && secret.revoked_at.is_none());
        let record = |(hash, secret): (&KeyHash, &Secret)| SecretRecord {
            hash: *hash,
            hash_kind: secret.hash_kind,
            account: account.clone(),
            key: secret.key,
            created_at: found.created_at,
            expires_at: secret.expires_at,
            revoked_at: found.revoked_at,
        };
        let mut secrets: Vec<_> = live.map(record).collect();
        secrets.sort_unstable_by_key(|secret| (secret.key, secret.hash));
        Ok(secrets)
    }
}

impl State {
    fn import_facts(&self, new: &ImportedAccount) -> ImportFacts {
        let holder = |secret: &Secret| self.accounts[secret.account].account.id.clone();
        let key_ids = || self.accounts.iter().flat_map(|record| &record.keys).map(|stored| &stored.key.id);
        let used = |tx| self.payments.record_of(tx).map(|record| (*tx, record.account.clone()));
        ImportFacts {
            account: self.found(&new.id).map(|(_, account)| account),
            holders: new.secrets().filter_map(|secret| self.keys.get(&secret.hash).map(holder)).collect(),
            key_ids_in_use: decision::imported_key_ids(new)
                .into_iter()
                .filter(|id| key_ids().any(|used| used == id))
                .collect(),
            owner: self.owner_facts(new.email.as_ref(), new.payer.as_ref().map(|payer| &payer.address)),
            used: new.used_transactions.iter().filter_map(|transaction| used(&transaction.tx)).collect(),
        }
    }

    fn write_import(&mut self, changes: ImportChanges, mode: ImportMode) -> AccountImported {
        let ImportChanges { account, keys, secrets, entries, usage, payments, conflicts } = changes;
        if mode == ImportMode::Check {
            return AccountImported::Created { account, conflicts };
        }
        for imported in entries {
            self.append(&account.id, imported.entry, imported.created_at);
        }
        let index = self.accounts.len();
        self.ids.insert(account.id.clone(), index);
        for secret in secrets {
            let SecretRecord { hash, hash_kind, key, expires_at, revoked_at, .. } = secret;
            // Those of a revoked account do not work either way.
            let revoked_at = revoked_at.filter(|_| account.revoked_at.is_none());
            self.keys.insert(hash, Secret { account: index, key, hash_kind, revoked_at, expires_at });
        }
        let keys = keys.into_iter().map(|record| StoredKey { key: record.key, meter: record.meter }).collect();
        let mut record = Record::with_keys(account.clone(), keys);
        for total in usage {
            let (calls, atoms) = (total.calls, i128::from(total.credits_used.atoms()));
            record.usage.insert((total.day, total.line, total.key), DayTotal { calls, atoms });
        }
        self.accounts.push(record);
        payments.into_iter().for_each(|record| self.payments.write_record(record));
        AccountImported::Created { account, conflicts }
    }
}
