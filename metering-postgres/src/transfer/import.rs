//! Imports another store: claims this one for the move, clears it, and writes the records batch by batch.
//!
//! Each batch is a serialized write (see `serialized`), so the outcome of a commit without a response is looked up, and
//! the batch is not written twice. The row of `turn` names the move in progress: batches of any other move, and all
//! other writes, are refused.

mod access;
mod books;
mod claim;
mod events;
mod inspection;
mod keys;
mod offers;
mod operators;
mod sales;
mod target_state;

use std::sync::Arc;

use async_trait::async_trait;
use metering_core::transfer::{Import, Record, Section, SourceId, TargetState};
use metering_core::{Clock, StoreError, SystemClock};

use crate::charging::known::SharedKnown;
use crate::connection::connect::PostgresConfig;
use crate::connection::session::GenericClient;
use crate::connection::wait::REPORT_TIMEOUT;
use crate::error::{Result, corrupt};
use crate::migrations;
use crate::rows::execute;
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
    /// use metering_core::transfer::{Export, Import, SourceId, TargetState, compare, copy};
    /// use metering_postgres::PostgresStore;
    ///
    /// /// Moves a store that nobody else has open, such as the one of `SqliteStore::open_alone`.
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
    /// use metering_core::transfer::{SourceId, TargetState};
    /// use metering_postgres::PostgresStore;
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
            return Ok(TargetState::UnderWay);
        }
        let source = *source;
        self.read_at_once(move |transaction| Box::pin(target_state::of(transaction, source))).await
    }

    async fn begin(&self, source: &SourceId) -> Result<TargetState, StoreError> {
        let claim = self.claim()?;
        if !claim.take(&self.pool).await? {
            return Ok(TargetState::UnderWay);
        }
        let (source, owner) = (*source, claim.owner());
        self.write_as(WriteOwner::Unconditional, REPORT_TIMEOUT, move |write| Box::pin(begin(write, source, owner)))
            .await
    }

    async fn import(&self, records: Vec<Record>) -> Result<(), StoreError> {
        let Some(section) = records.first().map(Record::section) else { return Ok(()) };
        let lines = self.line_numbers(&records).await?;
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
        let tables = target_state::TABLES.join(", ");
        let (sql, owner) = (format!("ANALYZE {tables}"), WriteOwner::Move(self.claim()?.owner()));
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
    /// The numbers of the records' usage lines, in order; empty if these records have none.
    async fn line_numbers(&self, records: &[Record]) -> Result<Vec<i64>, StoreError> {
        let lines: Vec<_> = records
            .iter()
            .filter_map(|record| match record {
                Record::Usage(total) => Some(total.line.clone()),
                Record::Activity(entry) => Some(entry.line.clone()),
                Record::Hold(hold) => Some(hold.line.clone()),
                _ => None,
            })
            .collect();
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
        client.batch_execute(&format!("TRUNCATE {}", target_state::TABLES.join(", "))).await?;
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
    events::finish(client).await?;
    let now = SystemClock.now().unix_millis();
    execute(client, "UPDATE import SET finished_at = $1 WHERE id = 1", &[&now]).await.map(drop)
}

/// Writes a batch. Every record must find the rows that it refers to.
async fn write_section(write: &SerializedWrite<'_>, section: Section, records: &[Record], lines: &[i64]) -> Result<()> {
    let written = match section {
        Section::Accounts => books::accounts(write, records).await?,
        Section::Ledger => books::ledger(write, records).await?,
        Section::Usage => books::usage(write, records, lines).await?,
        Section::Activity => books::activity(write, records, lines).await?,
        Section::Idempotency => books::idempotency_records(write, records).await?,
        Section::Holds => books::holds(write, records, lines).await?,
        Section::Volumes => books::volumes(write, records).await?,
        Section::Refills => books::refills(write, records).await?,
        Section::Plans => sales::plans(write, records).await?,
        Section::Payments => sales::payments(write, records).await?,
        Section::Authorizations => offers::authorizations(write, records).await?,
        Section::GasPlaces => offers::gas_places(write, records).await?,
        Section::Quotes => sales::quotes(write, records).await?,
        Section::Links => sales::links(write, records).await?,
        Section::ScanMarks => sales::scan_marks(write, records).await?,
        Section::Recipients => sales::recipients(write, records).await?,
        Section::Unreadable => sales::unreadable(write, records).await?,
        Section::Webhooks => events::webhooks(write, records).await?,
        Section::Events => events::events(write, records).await?,
        Section::Deliveries => events::deliveries(write, records).await?,
        Section::Challenges => access::challenges(write, records).await?,
        Section::Signups => access::signups(write, records).await?,
        Section::Solutions => access::solutions(write, records).await?,
        Section::EmailLinks => access::email_links(write, records).await?,
        Section::Operators => operators::operators(write, records).await?,
        Section::Prices => operators::prices(write, records).await?,
        Section::AuditLog => operators::audit_log(write, records).await?,
        Section::Keys => keys::keys(write, records).await?,
        Section::Secrets => keys::secrets(write, records).await?,
    };
    if u64::try_from(records.len()).is_ok_and(|count| count == written) {
        return Ok(());
    }
    let count = records.len();
    Err(corrupt(format_args!("{written} of {count} records of {section} were written")))
}
