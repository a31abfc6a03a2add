//! A schema of its own for each test that looks at plans.

use metering_tests::postgres::{Cluster, is_skipped, schema_of};

use crate::PostgresStore;

/// A schema with the store's tables.
pub(crate) struct Schema {
    name: String,
}

impl Schema {
    /// A new one; `None` if the tests on PostgreSQL are skipped.
    pub(crate) async fn new() -> Option<Self> {
        if is_skipped() {
            return None;
        }
        let url = Cluster::shared().fresh_schema();
        PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
        Some(Self { name: schema_of(&url).to_owned() })
    }

    /// Runs statements there, and returns what they print.
    pub(crate) fn run(&self, sql: &str) -> String {
        Cluster::shared().run(&format!("SET search_path = {}; {sql}", self.name))
    }
}
