//! Commits a batch of charges and refunds: one transaction in at most two round trips for a batch of any size.
//!
//! The first round trip begins the transaction and locks the meter of every account in the batch, ordered by account
//! number. A meter row has everything that the charge rule needs, including the live key, and every writer locks the
//! meter before it changes any of that, so what was read stays valid until the commit. The second round trip writes the
//! decisions, with one statement per table over arrays, and the row that records the outcome, and commits. What never
//! changes (which account a key belongs to) is cached; unknown keys are looked up before the transaction.
//!
//! A batch without idempotency keys skips the first round trip when this node was the last to commit charges of all its
//! accounts: it is decided with the meters as that commit left them, and the second round trip begins with the locks and
//! a check that they are still the same. Refusals are never decided so: only meters that are written are checked.

mod check;
mod columns;
mod write;

use std::collections::BTreeMap;

use futures_util::future::join3;
use metering_core::access::KeyHash;
use metering_core::charging::{Changes, Outcome, Posting, Remembered, Tally};
use metering_core::{AccountId, Decision, Refusal, RequestId, StoreError, Timestamp, UsageLine};
use tokio_postgres::Row;

use crate::charging::known::{Known, Numbered};
use crate::charging::left::{LeftMeters, Meter, Meters};
use crate::charging::tail::{Folds, Tail};
use crate::connection::session::{Client, GenericClient};
use crate::connection::value::Value;
use crate::connection::wait::{RESPONSE_TIMEOUT, within};
use crate::error::Result;
use crate::rows::{METER_COLUMNS, bytes, meter_state, stored_result};
use crate::store::PostgresStore;
use crate::transactions::outcome::{TransactionFailure, TransactionId};
use crate::transactions::retry::retried;
use write::{fold, write};

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
            Ok(batch) => batch.run(&client, &self.left, id, now).await,
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

/// What a batch is decided with.
#[derive(Default)]
struct Facts {
    meters: Meters,
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
        left: &LeftMeters,
        id: TransactionId,
        now: Timestamp,
    ) -> Result<Vec<Outcome>, TransactionFailure<Vec<Outcome>>> {
        if self.accounts.is_empty() {
            return Ok(self.decide(&Facts::default(), now).0);
        }
        if let Some(ended) = self.run_unread(client, left, id, now).await {
            return ended;
        }
        let mut facts = within(RESPONSE_TIMEOUT, self.lock_and_read(client, now)).await?;
        let (outcomes, changes) = self.decide(&facts, now);
        if changes.is_empty() {
            // All were refused, so there is nothing to write.
            within(RESPONSE_TIMEOUT, async { Ok(client.batch_execute("ROLLBACK").await?) }).await?;
            return Ok(outcomes);
        }
        let folds = self.update(&mut facts.meters, &changes, now)?;
        let written = within(RESPONSE_TIMEOUT, write(client, id, None, &facts.meters, &changes, &folds, now)).await;
        if written.is_ok() {
            left.put(facts.meters);
        }
        TransactionFailure::of_commit(written, outcomes)
    }

    /// Decides with the meters as this node left them, and checks them with the same round trip that writes. `None` when
    /// the batch has to be decided with meters that are read.
    async fn run_unread(
        &self,
        client: &Client,
        left: &LeftMeters,
        id: TransactionId,
        now: Timestamp,
    ) -> Option<Result<Vec<Outcome>, TransactionFailure<Vec<Outcome>>>> {
        if self.requests().next().is_some() {
            return None;
        }
        let mut facts = Facts { meters: left.take(self.accounts.keys().copied())?, ..Facts::default() };
        let (outcomes, changes) = self.decide(&facts, now);
        if !outcomes.iter().all(is_accepted) {
            left.put(facts.meters);
            return None;
        }
        let seen = facts.meters.clone();
        let folds = match self.update(&mut facts.meters, &changes, now) {
            Ok(folds) => folds,
            Err(failure) => return Some(Err(failure.into())),
        };
        let written =
            within(RESPONSE_TIMEOUT, write(client, id, Some(&seen), &facts.meters, &changes, &folds, now)).await;
        match &written {
            Ok(()) => left.put(facts.meters),
            Err(failure) if check::is_stale(failure) => {
                left.pause();
                return None;
            }
            Err(_) => {}
        }
        Some(TransactionFailure::of_commit(written, outcomes))
    }

    /// Brings the meters to where the changes take them. Returns what must be folded into other tables.
    fn update(&self, meters: &mut Meters, changes: &Changes<i64, i64>, now: Timestamp) -> Result<Folds> {
        for (account, state) in &changes.accounts {
            if let Some(meter) = meters.get_mut(account) {
                meter.state = *state;
            }
        }
        fold(meters, &changes.usage, &self.lines(), now)
    }

    /// The first round trip: locks and reads.
    async fn lock_and_read(&self, client: &Client, now: Timestamp) -> Result<Facts> {
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

    fn read(&self, locked: &[Row], remembered: &[Row]) -> Result<Facts> {
        let mut facts = Facts::default();
        for row in locked {
            let key = match row.try_get::<_, Option<&[u8]>>(2)? {
                Some(_) => Some(KeyHash::from_bytes(bytes(row, 2)?)),
                None => None,
            };
            let (entries, tail, state) = (row.try_get(1)?, Tail::of_row(row, 3)?, meter_state(row, 5)?);
            facts.meters.insert(row.try_get(0)?, Meter { key, state, entries, tail });
        }
        for row in remembered {
            facts.remembered.insert((row.try_get(0)?, row.try_get(1)?), stored_result(row, 2)?);
        }
        Ok(facts)
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

    fn decide(&self, facts: &Facts, now: Timestamp) -> (Vec<Outcome>, Changes<i64, i64>) {
        let mut tally = Tally::new(now);
        for (account, meter) in &facts.meters {
            if let Some(id) = self.accounts.get(account) {
                tally.load(*account, id.clone(), meter.state);
            }
        }
        let outcomes = self.items.iter().map(|item| item.decide(facts, &mut tally)).collect();
        (outcomes, tally.finish())
    }
}

impl Item<'_> {
    fn decide(&self, facts: &Facts, tally: &mut Tally<i64, i64>) -> Outcome {
        let account = self.account.filter(|account| tally.is_loaded(*account));
        let remembered = || {
            let request = (account?, request_of(self.posting)?.as_str().to_owned());
            facts.remembered.get(&request).copied()
        };
        match self.posting {
            Posting::Charge(charge) => match account.filter(|account| facts.is_live(*account, &charge.key)) {
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

fn is_accepted(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Decided(Decision::Accepted(_)) | Outcome::Refunded(Some(_)))
}

impl Facts {
    fn is_live(&self, account: i64, key: &KeyHash) -> bool {
        self.meters.get(&account).is_some_and(|meter| meter.key.as_ref() == Some(key))
    }
}
