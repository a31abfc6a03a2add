//! A separate schema for each test of query plans.

use metering_tests::postgres::{fresh_schema, run_in};

use crate::PostgresStore;
use crate::statements::dialect;

/// A schema with the store's tables.
pub(crate) struct Schema {
    url: String,
}

impl Schema {
    /// A new one; `None` if the tests on PostgreSQL are skipped.
    pub(crate) async fn new() -> Option<Self> {
        let schema = Self { url: fresh_schema()? };
        drop(schema.store().await);
        Some(schema)
    }

    /// Opens a store there.
    pub(crate) async fn store(&self) -> PostgresStore {
        PostgresStore::connect(&self.url.parse().unwrap()).await.unwrap()
    }

    /// Runs statements there, and returns what they print.
    pub(crate) fn run(&self, sql: &str) -> String {
        run_in(&self.url, sql)
    }

    /// Runs a statement twice with these values, in parentheses: for its rows and for its plan. Prepared statements keep
    /// one plan for all values after a few executions; so does this.
    pub(crate) fn look(&self, sql: &str, values: &str) -> Look {
        let prepared = format!("SET plan_cache_mode = force_generic_plan; PREPARE look AS {}", dialect(sql));
        let run = |explain: &str| self.run(&format!("{prepared}; {explain}EXECUTE look {values}"));
        Look { rows: run(""), plan: run("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) ") }
    }
}

/// A statement's rows, and its plan.
pub(crate) struct Look {
    pub(crate) rows: String,
    pub(crate) plan: String,
}

impl Look {
    /// How many pages it read, if any line has the number. The first line that does is the whole statement's.
    pub(crate) fn pages(&self) -> Option<u64> {
        let (_, pages) = self.plan.lines().find_map(|line| line.split_once("Buffers: shared hit="))?;
        Some(pages.split(' ').next().unwrap().parse().unwrap())
    }
}
