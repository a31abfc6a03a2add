//! A PostgreSQL with accounts that can pay for any number of charges, and the same accounts in the plain way's tables.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use metering_core::ApiKey;
use metering_core::store::SourceId;
use metering_postgres::PostgresStore;
use metering_sql::transfer::{Import, copy};

use crate::bench::Failure;
use crate::bench::accounts::Populated;
use crate::bench::random::{SEED, SplitMix64};
use crate::postgres::Cluster;

/// A running PostgreSQL, which is stopped and deleted on drop.
#[derive(Debug)]
pub(super) struct Accounts {
    cluster: Cluster,
    /// The accounts' keys, in an order unrelated to their creation.
    pub(super) keys: Vec<ApiKey>,
    /// How many charges there were, so that each run continues with the account after the last one charged.
    pub(super) next_account: Arc<AtomicUsize>,
}

impl Accounts {
    /// Starts a server with its data on the disk to measure, and creates accounts without caps. They are created in an
    /// SQLite file and moved here, thousands at a time: one by one, 100,000 take minutes.
    pub(super) async fn make(data_dir: &Path, count: usize) -> Result<Self, Failure> {
        // Memory as an operator would configure it, and time-based checkpoints that do not run mid-round.
        let mut settings = vec!["shared_buffers=2GB", "max_wal_size=8GB", "checkpoint_timeout=30min"];
        settings.extend(["wal_buffers=64MB", "max_connections=2000"]);
        let cluster = Cluster::start_in(data_dir, &settings);
        // Off while the accounts are moved: there is nothing to lose yet.
        let flushing =
            |value| cluster.run_all(&[&format!("ALTER SYSTEM SET fsync = {value}"), "SELECT pg_reload_conf()"]);
        flushing("off");
        let mut accounts = Self { cluster, keys: Vec::new(), next_account: Arc::default() };
        let mut populated = Populated::make(data_dir, count).await?;
        let target = PostgresStore::connect_to_import(&accounts.url().parse()?).await?;
        target.begin(&SourceId::from_bytes([0; 16])).await?;
        copy(&populated.open()?, &target, &mut |_, _| {}).await?;
        target.finish().await?;
        drop(target);
        accounts.keys = populated.accounts.drain(..).map(|(_, key)| key).collect();
        SplitMix64::new(SEED).shuffle(&mut accounts.keys);
        let cluster = &accounts.cluster;
        cluster.run_all(&["ALTER SYSTEM SET fsync = on", "SELECT pg_reload_conf()", "CHECKPOINT", "VACUUM ANALYZE"]);
        if cluster.run("SHOW fsync") != "on" {
            return Err("the database does not flush to disk, so its figures would mean nothing".into());
        }
        Ok(accounts)
    }

    /// Opens a store on the accounts.
    pub(super) async fn open(&self) -> Result<PostgresStore, Failure> {
        Ok(PostgresStore::connect(&self.url().parse()?).await?)
    }

    /// The database's URL.
    pub(super) fn url(&self) -> String {
        self.cluster.url()
    }

    /// The version that the server reports.
    pub(super) fn version(&self) -> String {
        let version = self.cluster.run("SHOW server_version");
        version.split(' ').next().unwrap_or_default().to_owned()
    }
}
