//! An agenthub database for tests.

use rusqlite::{Connection, params};

use crate::fixture::Fixture;

/// The name of the file.
pub(super) const FILE: &str = "agenthub.db";

/// Its tables, with rows added by the test.
pub(super) struct Hub(pub(super) Connection);

impl Hub {
    pub(super) fn new(fixture: &Fixture) -> Self {
        let connection = Connection::open(fixture.path(FILE)).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE signup_sessions (id TEXT PRIMARY KEY, email TEXT, agent_name TEXT, status TEXT);
                 CREATE TABLE api_keys (id TEXT PRIMARY KEY, session_id TEXT, email TEXT, api_key_hash TEXT, org_id TEXT,
                   credit_balance REAL, total_credits_purchased REAL, total_credits_used REAL, rate_limit_rpm INTEGER,
                   rate_limit_rpd INTEGER, created_at TEXT, revoked_at TEXT, payer_address TEXT);
                 CREATE TABLE credit_transactions (id INTEGER PRIMARY KEY, api_key_id TEXT, amount REAL, type TEXT,
                   description TEXT, http_method TEXT, route_template TEXT, request_path TEXT, client_source TEXT,
                   tx_hash TEXT, chain_id INTEGER, plan_id TEXT, created_at TEXT);
                 CREATE TABLE credit_plans (id TEXT, credits REAL);
                 BEGIN;",
            )
            .unwrap();
        Self(connection)
    }

    /// A key with its session.
    pub(super) fn key(&self, id: &str, hash: &str, amounts: [f64; 3]) {
        let sql = "INSERT INTO signup_sessions (id, email, agent_name) VALUES ('s' || ?1, ?1 || '@example.com', 'agent-' || ?1)";
        self.0.execute(sql, [id]).unwrap();
        let sql = "INSERT INTO api_keys VALUES (?1, 's' || ?1, ?1 || '@example.com', ?2, 'hub_' || ?1, ?3, ?4, ?5, 60, 1000, \
                   '2026-01-02 03:04:05', NULL, NULL)";
        self.0.execute(sql, params![id, hash, amounts[0], amounts[1], amounts[2]]).unwrap();
    }

    pub(super) fn transaction(&self, key: &str, kind: &str, amount: f64, tx_hash: Option<&str>) {
        let sql = "INSERT INTO credit_transactions (api_key_id, amount, type, http_method, route_template, client_source, \
                   tx_hash, chain_id, plan_id, created_at) VALUES (?1, ?2, ?3, 'GET', '/price/{id}', 'cli', ?4, 8453, \
                   'starter', '2026-02-03T04:05:06.789Z')";
        self.0.execute(sql, params![key, amount, kind, tx_hash]).unwrap();
    }

    pub(super) fn run(&self, sql: &str) {
        self.0.execute_batch(sql).unwrap();
    }

    pub(super) fn finish(self) {
        self.run("COMMIT");
    }
}
