//! Commits a batch of charges and refunds: one transaction in two round trips for a batch of any size.
//!
//! The first round trip begins the transaction and locks the meter of every account in the batch, ordered by account
//! number. A meter row has everything that the charge rule needs, including the live key, and every writer locks the
//! meter before it changes any of that, so what was read stays valid until the commit. The second round trip writes the
//! decisions, with one statement per table over arrays, and the row that records the outcome, and commits. What never
//! changes (which account a key belongs to) is cached; unknown keys are looked up before the transaction.

mod columns;

use std::collections::BTreeMap;

use futures_util::future::{join, join3, join4, try_join_all};
use metering_core::access::KeyHash;
use metering_core::charging::{Changes, MeterState, Outcome, Posting, Remembered, Tally, UsageChange, UsageKind};
use metering_core::{AccountId, Decision, Refusal, RequestId, StoreError, Timestamp, UsageLine};
use tokio_postgres::Row;

use crate::charging::entry::{Entry, Path};
use crate::charging::known::{Known, Numbered};
use crate::charging::tail::{Folds, Tail};
use crate::connection::session::{Client, GenericClient};
use crate::connection::value::Value;
use crate::connection::wait::{RESPONSE_TIMEOUT, within};
use crate::error::Result;
use crate::rows::{METER_COLUMNS, bytes, meter_state, stored_result};
use crate::store::PostgresStore;
use crate::transactions::outcome::{TransactionFailure, TransactionId};
use crate::transactions::retry::retried;
use crate::usage::activity::{self, BlockRows};
use columns::{DAILY, DailyRows, METERS, MeterRows, STORED_RESULTS, StoredResultRows};

impl PostgresStore {
    /// Decides and records a batch. A bad posting fails alone, without the rest of its batch.
    pub(crate) async fn commit_batch(&self, postings: &[Posting], now: Timestamp) -> Result<Vec<Outcome>, StoreError> {
        match self.commit_together(postings, now).await {
            Err(failure) if failure.is_data_error() && postings.len() > 1 => {
                tracing::error!(?failure, postings = postings.len(), "cannot record a batch; committing it in parts");
                self.commit_separately(postings, now).await
            }
            ended => Ok(ended?),
        }
    }

    /// Commits a batch in halves, and splits those that fail again, in order, until the bad postings are isolated.
    async fn commit_separately(&self, postings: &[Posting], now: Timestamp) -> Result<Vec<Outcome>, StoreError> {
        let mut outcomes = Vec::with_capacity(postings.len());
        let (first, second) = postings.split_at(postings.len() / 2);
        let mut parts = vec![second, first];
        while let Some(part) = parts.pop() {
            let failure = match self.commit_together(part, now).await {
                Ok(of_part) => {
                    outcomes.extend(of_part);
                    continue;
                }
                Err(failure) => failure,
            };
            if failure.is_data_error() && part.len() > 1 {
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([second, first]);
                continue;
            }
            // Earlier parts may already be committed, so only an unknown outcome fails the batch as a whole.
            let error = StoreError::from(failure);
            if error.outcome_is_unknown() {
                return Err(error);
            }
            tracing::error!(%error, postings = part.len(), "cannot record these postings; they had no effect");
            outcomes.extend(part.iter().map(|_| Outcome::Failed(error.to_string())));
        }
        Ok(outcomes)
    }

    /// Decides and records postings in one transaction. Retries transient failures, and never counts a posting twice.
    async fn commit_together(&self, postings: &[Posting], now: Timestamp) -> Result<Vec<Outcome>> {
        retried(|| self.try_to_commit(postings, now)).await
    }

    async fn try_to_commit(&self, postings: &[Posting], now: Timestamp) -> Result<Vec<Outcome>> {
        let client = self.pool.get().await?;
        let id = TransactionId::draw()?;
        let ended = match within(RESPONSE_TIMEOUT, Batch::resolve(&client, &self.known, postings)).await {
            Ok(batch) => batch.run(&client, id, now).await,
            Err(failure) => Err(TransactionFailure::NotCommitted(failure)),
        };
        self.end(client, id, now, ended).await
    }
}

/// A batch whose keys, accounts and usage lines are resolved to numbers.
struct Batch<'p> {
    items: Vec<Item<'p>>,
    /// All accounts by number. They are locked in this order.
    accounts: BTreeMap<i64, AccountId>,
}

struct Item<'p> {
    posting: &'p Posting,
    account: Option<i64>,
    line: i64,
}

type Lines<'p> = foldhash::HashMap<i64, &'p UsageLine>;

/// The state of an account, read under its lock.
struct Locked {
    id: AccountId,
    key: Option<KeyHash>,
    state: MeterState,
    entries: i64,
    tail: Tail,
}

/// Everything that was read under the locks.
struct Read {
    accounts: BTreeMap<i64, Locked>,
    remembered: BTreeMap<(i64, String), Remembered>,
}

impl<'p> Batch<'p> {
    async fn resolve(client: &Client, known: &Known, postings: &'p [Posting]) -> Result<Self> {
        let (mut keys, mut ids, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        for posting in postings {
            match posting {
                Posting::Charge(charge) => {
                    keys.push(charge.key);
                    lines.push(&charge.line);
                }
                Posting::Refund(refund) => {
                    ids.push(&refund.account);
                    lines.push(&refund.line);
                }
                Posting::Settle(settlement) => {
                    ids.push(&settlement.account);
                    lines.push(&settlement.line);
                }
            }
        }
        let mut of_keys = known.accounts_of_keys(client, &keys).await?.into_iter();
        let mut of_ids = known.accounts(client, &ids).await?.into_iter();
        let mut lines = known.lines(client, &lines).await?.into_iter();
        let (mut items, mut accounts) = (Vec::with_capacity(postings.len()), BTreeMap::new());
        for posting in postings {
            let account = match posting {
                Posting::Charge(_) => of_keys.next(),
                Posting::Refund(_) | Posting::Settle(_) => of_ids.next(),
            };
            let account = account.flatten().map(|Numbered { number, id }| {
                accounts.entry(number).or_insert(id);
                number
            });
            items.push(Item { posting, account, line: lines.next().unwrap_or_default() });
        }
        Ok(Self { items, accounts })
    }

    async fn run(
        &self,
        client: &Client,
        id: TransactionId,
        now: Timestamp,
    ) -> Result<Vec<Outcome>, TransactionFailure<Vec<Outcome>>> {
        if self.accounts.is_empty() {
            let mut nothing_loaded = Read { accounts: BTreeMap::new(), remembered: BTreeMap::new() };
            return Ok(self.decide(&mut nothing_loaded, now).0);
        }
        let mut read = within(RESPONSE_TIMEOUT, self.lock_and_read(client, now)).await?;
        let (outcomes, changes) = self.decide(&mut read, now);
        if changes.is_empty() {
            // All were refused, so there is nothing to write.
            within(RESPONSE_TIMEOUT, async { Ok(client.batch_execute("ROLLBACK").await?) }).await?;
            return Ok(outcomes);
        }
        let folds = fold(&mut read, &changes.usage, &self.lines(), now)?;
        let written = within(RESPONSE_TIMEOUT, write(client, id, &read, &changes, &folds, now)).await;
        TransactionFailure::of_commit(written, outcomes)
    }

    /// The first round trip: locks and reads.
    async fn lock_and_read(&self, client: &Client, now: Timestamp) -> Result<Read> {
        let accounts: Vec<i64> = self.accounts.keys().copied().collect();
        let (of, requests): (Vec<i64>, Vec<&str>) = self.requests().unzip();
        let lock = format!(
            "SELECT m.account, m.entries, m.key, m.tail_day, m.tail, {METER_COLUMNS} FROM meter m \
             WHERE m.account = ANY($1) ORDER BY m.account FOR UPDATE"
        );
        let remembered = "SELECT r.account, r.request_id, r.charged, r.balance, r.expires_at, r.fingerprint, r.tries, \
             r.open_until \
             FROM unnest($1::BIGINT[], $2::TEXT[]) AS asked (account, request_id) \
             JOIN request_id r ON r.account = asked.account AND r.request_id = asked.request_id \
             WHERE r.expires_at > $3";
        // Prepared first, so that the statements themselves are pipelined.
        let (locked, remembered) = (client.prepare(&lock).await?, client.prepare(remembered).await?);
        let (begin, now) = (client.begin(), now.unix_millis());
        let accounts_values: [&dyn Value; 1] = [&accounts];
        let requests_values: [&dyn Value; 3] = [&of, &requests, &now];
        let (started_at, locked, remembered) =
            join3(client.batch_execute(&begin), client.query(&locked, &accounts_values), async {
                if requests.is_empty() { Ok(Vec::new()) } else { client.query(&remembered, &requests_values).await }
            })
            .await;
        started_at?;
        self.read(&locked?, &remembered?)
    }

    fn read(&self, locked: &[Row], remembered: &[Row]) -> Result<Read> {
        let mut read = Read { accounts: BTreeMap::new(), remembered: BTreeMap::new() };
        for row in locked {
            let account: i64 = row.try_get(0)?;
            let Some(id) = self.accounts.get(&account).cloned() else { continue };
            let key = match row.try_get::<_, Option<&[u8]>>(2)? {
                Some(_) => Some(KeyHash::from_bytes(bytes(row, 2)?)),
                None => None,
            };
            let (entries, tail, state) = (row.try_get(1)?, Tail::of_row(row, 3)?, meter_state(row, 5)?);
            read.accounts.insert(account, Locked { id, key, state, entries, tail });
        }
        for row in remembered {
            read.remembered.insert((row.try_get(0)?, row.try_get(1)?), stored_result(row, 2)?);
        }
        Ok(read)
    }

    fn requests(&self) -> impl Iterator<Item = (i64, &'p str)> + '_ {
        self.items.iter().filter_map(|item| Some((item.account?, request_of(item.posting)?.as_str())))
    }

    /// The usage lines of the batch by number.
    fn lines(&self) -> Lines<'p> {
        let line = |posting: &'p Posting| match posting {
            Posting::Charge(charge) => &charge.line,
            Posting::Refund(refund) => &refund.line,
            Posting::Settle(settlement) => &settlement.line,
        };
        self.items.iter().map(|item| (item.line, line(item.posting))).collect()
    }

    fn decide(&self, read: &mut Read, now: Timestamp) -> (Vec<Outcome>, Changes<i64, i64>) {
        let mut tally = Tally::new(now);
        for (account, locked) in &read.accounts {
            tally.load(*account, locked.id.clone(), locked.state);
        }
        let outcomes = self.items.iter().map(|item| item.decide(read, &mut tally)).collect();
        (outcomes, tally.finish())
    }
}

impl Item<'_> {
    fn decide(&self, read: &Read, tally: &mut Tally<i64, i64>) -> Outcome {
        let account = self.account.filter(|account| tally.is_loaded(*account));
        let remembered = || {
            let request = (account?, request_of(self.posting)?.as_str().to_owned());
            read.remembered.get(&request).copied()
        };
        match self.posting {
            Posting::Charge(charge) => match account.filter(|account| read.is_live(*account, &charge.key)) {
                Some(account) => Outcome::Decided(tally.charge(account, self.line, charge.clone(), remembered())),
                None => Outcome::Decided(Decision::Refused(Refusal::UnknownKey)),
            },
            Posting::Refund(refund) => {
                let refunded = account.and_then(|account| tally.refund(account, self.line, refund, remembered()));
                Outcome::Refunded(refunded)
            }
            Posting::Settle(settlement) => {
                if let Some(account) = account {
                    tally.settle(account, settlement, remembered());
                }
                Outcome::Settled
            }
        }
    }
}

/// The request id whose remembered outcome decides a posting.
fn request_of(posting: &Posting) -> Option<&RequestId> {
    match posting {
        Posting::Charge(charge) => charge.request_id.as_ref(),
        Posting::Refund(refund) => refund.delivery.as_ref().map(|failed| &failed.request),
        Posting::Settle(settlement) => Some(&settlement.request),
    }
}

impl Read {
    fn is_live(&self, account: i64, key: &KeyHash) -> bool {
        self.accounts.get(&account).is_some_and(|locked| locked.key.as_ref() == Some(key))
    }
}

/// The second round trip: writes and commits.
async fn write(
    client: &Client,
    id: TransactionId,
    read: &Read,
    changes: &Changes<i64, i64>,
    folds: &Folds,
    now: Timestamp,
) -> Result<()> {
    let prepared = join4(
        client.prepare(DAILY),
        client.prepare(activity::BLOCKS),
        client.prepare(METERS),
        join(client.prepare(STORED_RESULTS), client.prepare(crate::transactions::outcome::INSERT)),
    );
    let (daily, blocks, meters, (remembered_results, outcome)) = prepared.await;
    let (daily, blocks, meters, remembered_results, outcome) =
        (daily?, blocks?, meters?, remembered_results?, outcome?);
    let daily_rows: Vec<DailyRows> = folds.usage.iter().map(DailyRows::new).collect();
    let (block_rows, meter_rows) = (BlockRows::new(folds), MeterRows::new(read, changes));
    let stored_result_rows = StoredResultRows::new(&changes.results);
    let (marked_at, mark) = (now.unix_millis(), id.bytes());
    let daily_values: Vec<_> = daily_rows.iter().map(DailyRows::values).collect();
    let (block_values, meter_values) = (block_rows.values(), meter_rows.values());
    let stored_result_values = stored_result_rows.values();
    let outcome_values: [&dyn Value; 2] = [&mark, &marked_at];
    // The statements are pipelined. After one fails, all later ones fail too.
    let (daily, blocks, meters, (remembered_results, outcome, committed)) = join4(
        try_join_all(daily_values.iter().map(|values| client.execute(&daily, values))),
        async { if block_rows.is_empty() { Ok(0) } else { client.execute(&blocks, &block_values).await } },
        client.execute(&meters, &meter_values),
        join3(
            async {
                if stored_result_rows.is_empty() {
                    Ok(0)
                } else {
                    client.execute(&remembered_results, &stored_result_values).await
                }
            },
            client.execute(&outcome, &outcome_values),
            client.batch_execute("COMMIT"),
        ),
    )
    .await;
    // The COMMIT of a failed transaction reports success although it rolls back, so check the other results first.
    daily?;
    blocks?;
    meters?;
    remembered_results?;
    outcome?;
    Ok(committed?)
}

/// Numbers the usage entries and adds them to the tails of their accounts. Returns what must be folded into other
/// tables.
fn fold(read: &mut Read, usage: &[UsageChange<i64, i64>], lines: &Lines<'_>, now: Timestamp) -> Result<Folds> {
    let mut folds = Folds::default();
    // Usage is sorted, so entries of the same daily total are adjacent.
    for same in usage.chunk_by(|a, b| (a.account, a.day, a.line) == (b.account, b.day, b.line)) {
        let UsageChange { account, day, line, .. } = same[0];
        let Some(locked) = read.accounts.get_mut(&account) else { continue };
        let template = lines.get(&line).map_or("", |line| &line.route_template);
        let entry = |(change, number): (_, i64)| {
            let UsageChange { kind, calls, request_path, .. }: &UsageChange<i64, i64> = change;
            Entry {
                number,
                line,
                amount: -change.added_credits().atoms(),
                refund: *kind == UsageKind::Refunded,
                calls: i64::try_from(*calls).unwrap_or(i64::MAX),
                created_at: now.unix_millis(),
                path: Path::of(request_path.as_deref(), template),
            }
        };
        let entries: Vec<Entry<'_>> = same.iter().zip(locked.entries + 1..).map(entry).collect();
        locked.entries = entries.last().map_or(locked.entries, |last| last.number);
        locked.tail.push(account, day.unix_days(), &entries, &mut folds)?;
    }
    Ok(folds)
}
