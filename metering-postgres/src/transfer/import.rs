//! Imports another store: claims this one for the move, clears it, and writes the records batch by batch.
//!
//! Each batch is a serialized write (see `serialized`), so the outcome of a commit without a response is looked up, and
//! the batch is not written twice. The row of `turn` names the move in progress: batches of any other move, and all
//! other writes, are refused.

mod books;
mod claim;
mod inspection;
mod target_state;

use std::sync::Arc;

use async_trait::async_trait;
use metering_core::store::SourceId;
use metering_core::{Clock, StoreError, SystemClock, UsageLine};
use metering_sql::transfer::{self, Import, Record, Section, TargetState};

use crate::charging::known::SharedKnown;
use crate::connection::connect::PostgresConfig;
use crate::connection::session::GenericClient;
use crate::connection::wait::REPORT_TIMEOUT;
use crate::error::{Result, corrupt};
use crate::migrations;
use crate::rows::execute;
use crate::statements::Statements;
use crate::store::PostgresStore;
use crate::transactions::serialized::{SerializedWrite, WriteOwner};

pub(crate) use claim::Claim;
pub use inspection::TargetInspection;

impl PostgresStore {
    /// Connects to move another store here. Creates the schema if there is none.
    ///
    /// Not run here, because it needs a PostgreSQL server:
    ///
    /// ```no_run
    /// use metering_core::store::SourceId;
    /// use metering_postgres::PostgresStore;
    /// use metering_sql::transfer::{Export, Import, TargetState, compare, copy};
    ///
    /// /// Moves a store that no one else has open, such as the one of `SqliteStore::open_alone`.
    /// async fn move_to(url: &str, source: &dyn Export, id: &SourceId) -> Result<(), Box<dyn std::error::Error>> {
    ///     let target = PostgresStore::connect_to_import(&url.parse()?).await?;
    ///     let (TargetState::Empty | TargetState::Unfinished) = target.begin(id).await? else {
    ///         return Err("the database is not empty".into());
    ///     };
    ///     copy(source, &target, &mut |section, records| println!("{section:?}: {records}")).await?;
    ///     if !compare(source, &target, &mut |_, _| {}).await?.is_equal() {
    ///         return Err("the copy differs".into());
    ///     }
    ///     Ok(target.finish().await?)
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`PostgresStore::connect`], except that an unfinished move is not an error.
    pub async fn connect_to_import(config: &PostgresConfig) -> Result<Self, StoreError> {
        let pool = config.pool().await?;
        migrations::migrate(&pool, true).await?;
        Ok(Self::new(pool, config, Some(Arc::new(Claim::draw()?))))
    }

    /// Connects to inspect the store without changing anything. `None` if there is no schema.
    ///
    /// Not run here, because it needs a PostgreSQL server:
    ///
    /// ```no_run
    /// use metering_core::store::SourceId;
    /// use metering_postgres::PostgresStore;
    /// use metering_sql::transfer::TargetState;
    ///
    /// /// Whether a store can be moved to this database.
    /// async fn is_free(url: &str, source: &SourceId) -> Result<bool, Box<dyn std::error::Error>> {
    ///     let Some(target) = PostgresStore::connect_to_inspect(&url.parse()?).await? else { return Ok(true) };
    ///     Ok(matches!(target.target_state(source).await?, TargetState::Empty | TargetState::Unfinished))
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`PostgresStore::connect_to_import`].
    pub async fn connect_to_inspect(config: &PostgresConfig) -> Result<Option<TargetInspection>, StoreError> {
        let store = Self::new(config.pool().await?, config, Some(Arc::new(Claim::draw()?)));
        let found = store.read(|client| {
            Box::pin(async move {
                migrations::check_encoding(client).await?;
                migrations::version(client).await
            })
        });
        Ok(match found.await? {
            None => None,
            Some(found) => Some(TargetInspection::new(store, found)?),
        })
    }

    fn claim(&self) -> Result<&Claim, StoreError> {
        let missing = || StoreError::Unavailable("this store was not opened for importing another one".into());
        self.claim.as_deref().ok_or_else(missing)
    }
}

#[async_trait]
impl Import for PostgresStore {
    async fn target_state(&self, source: &SourceId) -> Result<TargetState, StoreError> {
        if claim::is_held(&self.pool).await? {
            return Ok(TargetState::InProgress);
        }
        let source = *source;
        self.read_at_once(move |transaction| Box::pin(target_state::of(transaction, source))).await
    }

    async fn begin(&self, source: &SourceId) -> Result<TargetState, StoreError> {
        let claim = self.claim()?;
        if !claim.take(&self.pool).await? {
            return Ok(TargetState::InProgress);
        }
        let (source, owner) = (*source, claim.owner());
        self.write_as(WriteOwner::Unconditional, REPORT_TIMEOUT, move |write| Box::pin(begin(write, source, owner)))
            .await
    }

    async fn import(&self, records: Vec<Record>) -> Result<(), StoreError> {
        let Some(section) = records.first().map(Record::section) else { return Ok(()) };
        let lines = records.iter().filter_map(|record| match record {
            Record::Usage(total) => Some(total.line.clone()),
            Record::Activity(entry) => Some(entry.line.clone()),
            Record::Hold(hold) => Some(hold.line.clone()),
            _ => None,
        });
        let lines = self.line_numbers(lines.collect()).await?;
        let (records, lines) = (Arc::new(records), Arc::new(lines));
        let owner = WriteOwner::Move(self.claim()?.owner());
        self.write_as(owner, REPORT_TIMEOUT, move |write| {
            let (records, lines) = (Arc::clone(&records), Arc::clone(&lines));
            Box::pin(async move { write_section(write, section, &records, &lines).await })
        })
        .await
    }

    async fn settle(&self) -> Result<(), StoreError> {
        // Without statistics on the new tables, the database would choose poor query plans.
        let (sql, owner) =
            (format!("ANALYZE {}", target_state::tables().join(", ")), WriteOwner::Move(self.claim()?.owner()));
        self.write_as(owner, REPORT_TIMEOUT, |write| {
            let sql = sql.clone();
            Box::pin(async move { Ok(write.client().batch_execute(&sql).await?) })
        })
        .await
    }

    async fn finish(&self) -> Result<(), StoreError> {
        let claim = self.claim()?;
        self.write_as(WriteOwner::Move(claim.owner()), REPORT_TIMEOUT, |write| Box::pin(finish(write))).await?;
        claim.release().await;
        Ok(())
    }
}

impl PostgresStore {
    /// The numbers of usage lines, in order.
    async fn line_numbers(&self, lines: Vec<UsageLine>) -> Result<Vec<i64>, StoreError> {
        self.read(|client| {
            let (lines, known) = (lines.clone(), SharedKnown::clone(&self.known));
            Box::pin(async move { known.lines(client, &lines.iter().collect::<Vec<_>>()).await })
        })
        .await
    }
}

async fn begin(write: &SerializedWrite<'_>, source: SourceId, owner: [u8; 16]) -> Result<TargetState> {
    let client = write.client();
    let found = target_state::of(client, source).await?;
    if found == TargetState::Unfinished {
        // One statement for all tables, in the same transaction that claims the store.
        client.batch_execute(&format!("TRUNCATE {}", target_state::tables().join(", "))).await?;
    }
    if matches!(found, TargetState::Empty | TargetState::Unfinished) {
        // A server that was started on this database by mistake has registered recipients, the operator's webhook and
        // its catalogue, but nothing else.
        client.batch_execute("TRUNCATE recipient, price_version; DELETE FROM webhook").await?;
        let sql = "INSERT INTO import (id, source, began_at, finished_at) VALUES (1, $1, $2, NULL) \
                   ON CONFLICT (id) DO UPDATE SET source = excluded.source, began_at = excluded.began_at";
        let now = SystemClock.now().unix_millis();
        execute(client, sql, &[&source.as_bytes().as_slice(), &now]).await?;
        execute(client, "UPDATE turn SET import_owner = $1 WHERE id = 1", &[&owner.as_slice()]).await?;
    }
    Ok(found)
}

async fn finish(write: &SerializedWrite<'_>) -> Result<()> {
    let client = write.client();
    // Entries of the ledger and of the audit log keep their ids, so the next id must be above them.
    let sql = "UPDATE turn SET import_owner = NULL, \
               last_id = greatest(last_id, (SELECT max(id) FROM ledger), (SELECT max(id) FROM audit_entry)) \
               WHERE id = 1";
    execute(client, sql, &[]).await?;
    execute(client, HEADS, &[]).await?;
    execute(client, NUMBERS, &[]).await?;
    let now = SystemClock.now().unix_millis();
    execute(client, "UPDATE import SET finished_at = $1 WHERE id = 1", &[&now]).await.map(drop)
}

/// Marks the heads of all lines.
const HEADS: &str = "UPDATE delivery SET is_head = TRUE WHERE id IN ( \
     SELECT DISTINCT ON (d.webhook, d.account) d.id FROM delivery d JOIN webhook w ON w.id = d.webhook \
     WHERE d.state = 'pending' AND (w.state = 'active' OR w.id = 0) ORDER BY d.webhook, d.account, d.event, d.id)";

/// The next numbers are above those of all events and deliveries.
const NUMBERS: &str = "SELECT setval('event_number', coalesce((SELECT max(number) FROM event), 0) + 1, FALSE), \
     setval('delivery_number', coalesce((SELECT max(id) FROM delivery), 0) + 1, FALSE)";

/// Writes a batch. Every record must find the rows that it refers to.
async fn write_section(write: &SerializedWrite<'_>, section: Section, records: &[Record], lines: &[i64]) -> Result<()> {
    let written = match section {
        Section::Ledger => books::ledger(write, records).await?,
        Section::Activity => books::activity(write, records, lines).await?,
        Section::Holds => books::holds(write, records, lines).await?,
        _ => transfer::write(&mut Statements(write.client()), section, records, lines).await?,
    };
    if section == Section::Accounts {
        books::entry_counts(write, records).await?;
    }
    if u64::try_from(records.len()).is_ok_and(|count| count == written) {
        return Ok(());
    }
    let count = records.len();
    Err(corrupt(format_args!("{written} of {count} records of {section} were written")))
}
