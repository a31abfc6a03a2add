//! Imports accounts of other services.

use metering_core::access::{Key, KeyHash, SecretRecord};
use metering_core::backend::decision::{self, Decided, ImportChanges, ImportFacts};
use metering_core::imports::{AccountImported, ImportMode, ImportedAccount, ImportedEntry};
use metering_core::{AccountId, StoreError, Timestamp};

use crate::backend::{Backend, Call, read, write};
use crate::executor::Executor;
use crate::fault::Result;
use crate::owners::owner_facts;
use crate::record;
use crate::{accounts, keys, log, payments, usage, values};

/// Imports accounts in order, all in one transaction, or reports what would happen to each.
///
/// # Errors
/// Those of the database.
pub async fn run(
    db: &dyn Backend,
    accounts: Vec<ImportedAccount>,
    mode: ImportMode,
    now: Timestamp,
) -> Result<Vec<AccountImported>, StoreError> {
    let args = (accounts, mode, now);
    let script: Call<(Vec<ImportedAccount>, ImportMode, Timestamp), _> =
        |db, (accounts, mode, now)| Box::pin(import(db, accounts, *mode, *now));
    match mode {
        ImportMode::Check => read(db, args, script).await,
        ImportMode::Write => write(db, args, script).await,
    }
}

/// Imports accounts in order, or only reports what would happen to each.
async fn import(
    db: &mut dyn Executor,
    accounts: &[ImportedAccount],
    mode: ImportMode,
    now: Timestamp,
) -> Result<Vec<AccountImported>> {
    let mut outcomes = Vec::with_capacity(accounts.len());
    for new in accounts {
        let facts = facts(db, new).await?;
        outcomes.push(match decision::import_account(new.clone(), facts, now) {
            Decided::Accepted(changes) => {
                if mode == ImportMode::Write {
                    insert(db, &changes, now).await?;
                }
                let ImportChanges { account, conflicts, .. } = *changes;
                AccountImported::Created { account, conflicts }
            }
            Decided::Refused(refusal) => refusal,
        });
    }
    Ok(outcomes)
}

async fn facts(db: &mut dyn Executor, new: &ImportedAccount) -> Result<ImportFacts> {
    let payer = new.payer.as_ref().map(|payer| &payer.address);
    let mut facts = ImportFacts {
        account: accounts::by_id(db, &new.id).await?.map(|(_, account)| account),
        owner: owner_facts(db, new.email.as_ref(), payer).await?,
        ..ImportFacts::default()
    };
    for secret in new.secrets() {
        facts.holders.extend(holder(db, &secret.hash).await?);
    }
    for id in decision::imported_key_ids(new) {
        if record::find::<Key>(db, "WHERE {key_id} = ?1", &values![id]).await?.is_some() {
            facts.key_ids_in_use.push(id);
        }
    }
    for transaction in &new.used_transactions {
        let record = payments::by_tx(db, &transaction.tx).await?;
        facts.used.extend(record.map(|record| (transaction.tx, record.account)));
    }
    Ok(facts)
}

/// The account that has, or had, a secret.
async fn holder(db: &mut dyn Executor, secret: &KeyHash) -> Result<Option<AccountId>> {
    let found: Option<SecretRecord> = record::find(db, "WHERE hash = ?1", &values![secret]).await?;
    Ok(found.map(|secret| secret.account))
}

/// The account is new, so nothing charges it or has read it. Secrets come last.
async fn insert(db: &mut dyn Executor, changes: &ImportChanges, now: Timestamp) -> Result<()> {
    let ImportChanges { account, keys, secrets, entries, usage, payments: used, conflicts: _ } = changes;
    let row = accounts::insert_unused(db, account).await?;
    keys::insert(db, keys).await?;
    let entry = |imported: &ImportedEntry| (imported.entry.clone(), imported.created_at);
    db.append_entries(row, &entries.iter().map(entry).collect::<Vec<_>>()).await?;
    let lines = db.line_numbers(&usage.iter().map(|total| &total.line).collect::<Vec<_>>()).await?;
    usage::insert(db, usage, &lines).await?;
    log::note_import(db, row, usage, now).await?;
    payments::insert(db, used).await?;
    record::insert(db, secrets).await.map(drop)
}
