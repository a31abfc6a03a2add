//! Commits a batch of charges and refunds: one transaction and one row of the journal per batch.

use metering_core::access::KeyNumber;
use metering_core::charging::{
    Changes, Delivery, Fingerprint, Outcome, Posting, Refund, Remembered, Settlement, StoredResult, Tally,
};
use metering_core::{AccountId, Charge, Credits, Decision, Refusal, RequestId, Timestamp};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::access::keys::Secret;
use crate::charging::cache::Cache;
use crate::error::{Result, commit_error, store_error};
use crate::journal::fold::Amount;
use crate::journal::{Change, Usage};
use crate::rows::{first, timestamp};

/// Decides and records a batch. On an error, the caller must clear the cache.
pub(crate) fn commit(
    connection: &mut Connection,
    cache: &mut Cache,
    postings: Vec<Posting>,
    now: Timestamp,
) -> Result<Vec<Outcome>> {
    cache.load(connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(store_error)?;
    cache.sync(&transaction)?;
    let mut batch = Batch { transaction: &transaction, cache, tally: Tally::new(now), now, lines_added: false };
    let outcomes = postings.into_iter().map(|posting| batch.post(posting)).collect::<Result<_>>()?;
    let Batch { cache, tally, lines_added, .. } = batch;
    let changes = tally.finish();
    if changes.is_empty() && !lines_added {
        // All were refused, so there is nothing to write.
        return Ok(outcomes);
    }
    write(&transaction, cache, changes, now)?;
    transaction.commit().map_err(commit_error)?;
    Ok(outcomes)
}

/// A batch that is being decided.
struct Batch<'a> {
    transaction: &'a Transaction<'a>,
    cache: &'a mut Cache,
    tally: Tally<i64, i64>,
    now: Timestamp,
    lines_added: bool,
}

impl Batch<'_> {
    fn post(&mut self, posting: Posting) -> Result<Outcome> {
        match posting {
            Posting::Charge(charge) => self.charge(charge).map(Outcome::Decided),
            Posting::Refund(refund) => self.refund(&refund).map(Outcome::Refunded),
            Posting::Settle(settlement) => self.settle(&settlement).map(|()| Outcome::Settled),
        }
    }

    fn charge(&mut self, charge: Charge) -> Result<Decision> {
        let secret = self.cache.secret(self.transaction, &charge.key)?.filter(|secret| secret.works(self.now));
        let (account, key) = match secret {
            Some(Secret { account, key, .. }) if self.load(account, key)? => (account, key),
            _ => return Ok(Decision::Refused(Refusal::UnknownKey)),
        };
        let line = self.line(&charge.line)?;
        let remembered = match &charge.request_id {
            Some(request) => remembered(self.transaction, account, &request.of_key_number(key), self.now)?,
            None => None,
        };
        Ok(self.tally.charge(account, key, line, charge, remembered))
    }

    fn refund(&mut self, refund: &Refund) -> Result<Option<Credits>> {
        match self.account(&refund.account)? {
            Some(account) if self.load(account, refund.key)? => {
                let line = self.line(&refund.line)?;
                let remembered = match &refund.delivery {
                    Some(failed) => remembered(self.transaction, account, &failed.request, self.now)?,
                    None => None,
                };
                Ok(self.tally.refund(account, line, refund, remembered))
            }
            _ => Ok(None),
        }
    }

    fn settle(&mut self, settlement: &Settlement) -> Result<()> {
        if let Some(account) = self.account(&settlement.account)? {
            let remembered = remembered(self.transaction, account, &settlement.request, self.now)?;
            self.tally.settle(account, settlement, remembered);
        }
        Ok(())
    }

    fn account(&self, id: &AccountId) -> Result<Option<i64>> {
        let sql = "SELECT id FROM account WHERE org_id = ?1";
        let mut statement = self.transaction.prepare_cached(sql).map_err(store_error)?;
        first(&mut statement, [id.as_str()], |row| row.get(0).map(Ok))
    }

    /// Loads an account, and a key with the keys above it. `false` if there is no such account.
    fn load(&mut self, account: i64, key: KeyNumber) -> Result<bool> {
        if !self.tally.is_loaded(account) {
            let Some(cached) = self.cache.account(self.transaction, account)? else { return Ok(false) };
            self.tally.load(account, cached.id.clone(), cached.state);
        }
        while let Some(missing) = self.tally.missing_key(account, key) {
            self.tally.load_key(account, missing, self.cache.key(self.transaction, account, missing)?);
        }
        Ok(true)
    }

    fn line(&mut self, line: &metering_core::UsageLine) -> Result<i64> {
        let (id, new) = self.cache.line(self.transaction, line)?;
        self.lines_added |= new;
        Ok(id)
    }
}

fn remembered(
    connection: &Connection,
    account: i64,
    request: &RequestId,
    now: Timestamp,
) -> Result<Option<Remembered>> {
    let sql = format!(
        "SELECT {STORED_RESULT_COLUMNS} FROM request_id WHERE account = ?1 AND request_id = ?2 AND expires_at > ?3"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    first(&mut statement, params![account, request.as_str(), now.unix_millis()], |row| stored_result(row, 0).map(Ok))
}

/// The columns that [`stored_result`] reads from `request_id`.
pub(crate) const STORED_RESULT_COLUMNS: &str = "charged, balance, expires_at, fingerprint, tries, open_until";

/// Reads the remembered outcome of a request from the columns at `from` on.
pub(crate) fn stored_result(row: &rusqlite::Row<'_>, from: usize) -> rusqlite::Result<Remembered> {
    let amount = |index| row.get(from + index).map(Credits::from_atoms);
    let delivery = match row.get::<_, Option<[u8; 16]>>(from + 3)? {
        Some(fingerprint) => Some(Delivery {
            fingerprint: Fingerprint::from_bytes(fingerprint),
            tries: row.get(from + 4)?,
            open_until: row.get::<_, Option<i64>>(from + 5)?.map(Timestamp::from_unix_millis),
        }),
        None => None,
    };
    let result = StoredResult { charged: amount(0)?, balance: amount(1)?, delivery };
    Ok(Remembered { result, expires_at: timestamp(row, from + 2)? })
}

fn write(connection: &Connection, cache: &mut Cache, changes: Changes<i64, i64>, now: Timestamp) -> Result<()> {
    for (account, state) in &changes.accounts {
        cache.known_account(*account).state = *state;
    }
    for (account, key, meter) in &changes.keys {
        cache.write_key_meter(connection, *account, *key, *meter)?;
    }
    write_stored_results(connection, &changes.results).map_err(store_error)?;
    let usage = changes.usage.iter().map(|change| {
        let usage = Usage::of(change, cache.template(change.line), now)?;
        Ok((change.account, Change::Usage(usage)))
    });
    let usage = usage.collect::<Result<Vec<_>>>()?;
    if !usage.is_empty() {
        cache.append(connection, usage, now)?;
    }
    if cfg!(debug_assertions) {
        for (account, state) in &changes.accounts {
            cache.assert_stored(connection, *account, *state)?;
        }
    }
    let Cache { round, unfolded, .. } = cache;
    round.slice(connection, unfolded, Amount::Due).map(drop)
}

fn write_stored_results(connection: &Connection, results: &[(i64, RequestId, Remembered)]) -> rusqlite::Result<()> {
    if results.is_empty() {
        return Ok(());
    }
    let mut remember = connection.prepare_cached(&format!(
        "INSERT OR REPLACE INTO request_id (account, request_id, {STORED_RESULT_COLUMNS}) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
    ))?;
    for (account, request, remembered) in results {
        let Remembered { result: StoredResult { charged, balance, delivery }, expires_at } = remembered;
        remember.execute(params![
            account,
            request.as_str(),
            charged.atoms(),
            balance.atoms(),
            expires_at.unix_millis(),
            delivery.as_ref().map(|delivery| *delivery.fingerprint.as_bytes()),
            delivery.map(|delivery| delivery.tries),
            delivery.and_then(|delivery| delivery.open_until).map(Timestamp::unix_millis),
        ])?;
    }
    Ok(())
}
