//! Imports accounts of other services into a store that is in use.
//!
//! They are written with the statements that a moved store is written with, one account at a time.

use metering_core::access::KeyHash;
use metering_core::backend::decision::{self, Decided, ImportChanges, ImportFacts};
use metering_core::imports::{AccountImported, ImportedAccount};
use metering_core::money::LedgerEntry;
use metering_core::transfer::{AccountRecord, LedgerRecord, Record, SecretRecord};
use metering_core::usage::ACTIVITY_KEPT;
use metering_core::{AccountId, Timestamp};
use metering_sql::owners::owner_facts;
use metering_sql::payments;

use crate::access::accounts;
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::{all, bytes, exists, first, key_number, optional_timestamp, parsed, timestamp};
use crate::script::Statements;
use crate::transactions::serialized::SerializedWrite;

use super::{books, keys, sales};

/// Imports accounts in order. `lines` are the numbers of the usage lines of all of them, in order.
pub(crate) async fn import(
    write: &SerializedWrite<'_>,
    accounts: &[ImportedAccount],
    mut lines: &[i64],
    now: Timestamp,
) -> Result<Vec<AccountImported>> {
    let mut outcomes = Vec::with_capacity(accounts.len());
    for new in accounts {
        let (of_account, rest) = lines.split_at(new.usage.len().min(lines.len()));
        lines = rest;
        let facts = facts(write.client(), new).await?;
        outcomes.push(match decision::import_account(new.clone(), facts, now) {
            Decided::Accepted(changes) => {
                write_account(write, &changes, of_account).await?;
                let ImportChanges { account, conflicts, .. } = *changes;
                AccountImported::Created { account, conflicts }
            }
            Decided::Refused(refusal) => refusal,
        });
    }
    Ok(outcomes)
}

/// What importing an account would do.
pub(crate) async fn check<C: GenericClient>(
    client: &C,
    accounts: &[ImportedAccount],
    now: Timestamp,
) -> Result<Vec<AccountImported>> {
    let mut outcomes = Vec::with_capacity(accounts.len());
    for new in accounts {
        let facts = facts(client, new).await?;
        outcomes.push(match decision::import_account(new.clone(), facts, now) {
            Decided::Accepted(changes) => {
                let ImportChanges { account, conflicts, .. } = *changes;
                AccountImported::Created { account, conflicts }
            }
            Decided::Refused(refusal) => refusal,
        });
    }
    Ok(outcomes)
}

async fn facts<C: GenericClient>(client: &C, new: &ImportedAccount) -> Result<ImportFacts> {
    let mut facts = ImportFacts {
        account: accounts::by_id(client, &new.id).await?.map(|(_, account)| account),
        owner: owner_facts(&mut Statements(client), new.email.as_ref(), new.payer.as_ref().map(|payer| &payer.address))
            .await?,
        ..ImportFacts::default()
    };
    let holder = "SELECT a.org_id FROM key_secret s JOIN account a ON a.id = s.account WHERE s.hash = $1";
    for secret in new.secrets() {
        let row = first(client, holder, &[&secret.hash.as_bytes().as_slice()]).await?;
        facts.holders.extend(row.as_ref().map(|row| parsed::<AccountId>(row, 0)).transpose()?);
    }
    for id in decision::imported_key_ids(new) {
        if exists(client, "SELECT 1 FROM api_key WHERE id = $1", &[&id.as_str()]).await? {
            facts.key_ids_in_use.push(id);
        }
    }
    for transaction in &new.used_transactions {
        let record = payments::by_tx(&mut Statements(client), &transaction.tx).await?;
        facts.used.extend(record.map(|record| (transaction.tx, record.account)));
    }
    Ok(facts)
}

async fn write_account(write: &SerializedWrite<'_>, changes: &ImportChanges, lines: &[i64]) -> Result<()> {
    let ImportChanges { account, keys, secrets, entries, usage, payments, conflicts: _ } = changes;
    let record = AccountRecord {
        account: account.clone(),
        minute: Default::default(),
        day: Default::default(),
        entries: entries.len() as u64,
        refilled_on: None,
    };
    books::accounts(write, &[Record::Account(Box::new(record))]).await?;
    let records: Vec<_> = keys.iter().cloned().map(|key| Record::Key(Box::new(key))).collect();
    keys::keys(write, &records).await?;
    if !entries.is_empty() {
        let ids = write.next_ids(entries.len()).await?;
        let newer = (0..entries.len()).rev().map(|newer| u32::try_from(newer).ok());
        let records = entries.iter().zip(ids).zip(newer).map(|((imported, id), newer)| {
            let entry = imported.entry.clone();
            Record::Ledger(LedgerRecord {
                entry: LedgerEntry {
                    id,
                    account: account.id.clone(),
                    kind: entry.kind,
                    amount: entry.amount,
                    description: entry.description,
                    payment: entry.payment,
                    created_at: imported.created_at,
                },
                newer: newer.filter(|newer| *newer < ACTIVITY_KEPT),
            })
        });
        books::ledger(write, &records.collect::<Vec<_>>()).await?;
    }
    if !usage.is_empty() {
        let records: Vec<_> = usage.iter().cloned().map(Record::Usage).collect();
        books::usage(write, &records, lines).await?;
    }
    if !payments.is_empty() {
        let records: Vec<_> = payments.iter().cloned().map(|record| Record::Payment(Box::new(record))).collect();
        sales::payments(write, &records).await?;
    }
    let records: Vec<_> = secrets.iter().cloned().map(Record::Secret).collect();
    if !records.is_empty() {
        keys::secrets(write, &records).await?;
    }
    Ok(())
}

/// The secrets of an account's keys that are not revoked, or were revoked with the account.
pub(crate) async fn secrets<C: GenericClient>(client: &C, account: &AccountId) -> Result<Vec<SecretRecord>> {
    let sql = "SELECT s.hash, s.key, s.created_at, s.expires_at, s.hash_kind, s.revoked_at FROM account a \
               JOIN key_secret s ON s.account = a.id WHERE a.org_id = $1 AND (s.revoked_at IS NULL OR s.revoked_at = a.revoked_at) \
               ORDER BY s.key, s.hash";
    let mut found = Vec::new();
    for row in &all(client, sql, &[&account.as_str()]).await? {
        found.push(SecretRecord {
            hash: KeyHash::from_bytes(bytes(row, 0)?),
            hash_kind: parsed(row, 4)?,
            account: account.clone(),
            key: key_number(row, 1)?,
            created_at: timestamp(row, 2)?,
            expires_at: optional_timestamp(row, 3)?,
            revoked_at: optional_timestamp(row, 5)?,
        });
    }
    Ok(found)
}
