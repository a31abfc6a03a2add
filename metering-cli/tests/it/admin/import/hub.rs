//! An agenthub database for tests.

use rusqlite::{Connection, params};

use crate::program::Program;

/// The name of the file.
pub(super) const FILE: &str = "agenthub.db";

/// Its tables, with rows added by the test.
pub(super) struct Hub(pub(super) Connection);

impl Hub {
    pub(super) fn new(program: &Program) -> Self {
        let connection = Connection::open(program.path(FILE)).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE signup_sessions (id TEXT PRIMARY KEY, email TEXT, agent_name TEXT, status TEXT);
                 CREATE TABLE api_keys (id TEXT PRIMARY KEY, session_id TEXT, email TEXT, api_key_hash TEXT, org_id TEXT,
                   credit_balance REAL, total_credits_purchased REAL, total_credits_used REAL, rate_limit_rpm INTEGER,
                   rate_limit_rpd INTEGER, created_at TEXT, revoked_at TEXT, payer_address TEXT);
                 CREATE TABLE credit_transactions (id INTEGER PRIMARY KEY, api_key_id TEXT, amount REAL, type TEXT,
                   description TEXT, http_method TEXT, route_template TEXT, request_path TEXT, client_source TEXT,
                   tx_hash TEXT, chain_id INTEGER, plan_id TEXT, created_at TEXT);
                 CREATE TABLE credit_plans (id TEXT, chain_id INTEGER, credits REAL);
                 CREATE TABLE signup_payment_quotes (id TEXT PRIMARY KEY, signup_nonce_hash TEXT, signup_nonce_raw TEXT,
                   agent_name TEXT, email TEXT, plan_id TEXT, chain_id INTEGER, token_contract TEXT, token_symbol TEXT,
                   token_decimals INTEGER, amount_atomic TEXT, payer_address TEXT, recipient TEXT, terms_version TEXT,
                   created_at TEXT, expires_at TEXT, consumed_at TEXT, api_key_id TEXT, claim_tx_hash TEXT,
                   payment_kind TEXT);
                 BEGIN;",
            )
            .unwrap();
        Self(connection)
    }

    /// A key with its session.
    pub(super) fn key(&self, id: &str, hash: &str, amounts: [f64; 3]) {
        let sql = "INSERT INTO signup_sessions (id, email, agent_name) VALUES ('s' || ?1, ?1 || '@example.com', 'agent-' || ?1)";
        self.0.execute(sql, [id]).unwrap();
        let sql = "INSERT INTO api_keys VALUES (?1, 's' || ?1, ?1 || '@example.com', ?2, \
                   'org_' || substr(lower(hex(?1)) || '000000000000000000000000', 1, 24), ?3, ?4, ?5, 60, 1000, \
                   '2026-01-02 03:04:05', NULL, NULL)";
        self.0.execute(sql, params![id, hash, amounts[0], amounts[1], amounts[2]]).unwrap();
    }

    pub(super) fn transaction(&self, key: &str, kind: &str, amount: f64, tx_hash: Option<&str>) {
        let sql = "INSERT INTO credit_transactions (api_key_id, amount, type, http_method, route_template, client_source, \
                   tx_hash, chain_id, plan_id, created_at) VALUES (?1, ?2, ?3, 'GET', '/price/{id}', 'cli', ?4, 8453, \
                   'starter', '2026-02-03T04:05:06.789Z')";
        self.0.execute(sql, params![key, amount, kind, tx_hash]).unwrap();
    }

    /// A quote for 10 credits of the wallet `0x` and forty times `payer`, for an hour from now.
    pub(super) fn quote(&self, nonce: &str, payer: char, consumed_by: Option<&str>) {
        let sql = "INSERT INTO signup_payment_quotes (id, signup_nonce_hash, signup_nonce_raw, agent_name, plan_id, chain_id, \
                   token_contract, amount_atomic, payer_address, recipient, created_at, expires_at, consumed_at, \
                   api_key_id, payment_kind) VALUES (?1, '', ?1, 'buyer-' || ?2, 'starter', 8453, ?3, '5000000', ?4, ?5, \
                   strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+1 hour'), \
                   iif(?6 IS NULL, NULL, '2026-01-01'), ?6, 'erc20')";
        let address = |digit: char| format!("0x{}", digit.to_string().repeat(40));
        let (token, recipient) = (address('c'), address('e'));
        let values = params![nonce, payer.to_string(), token, address(payer), recipient, consumed_by];
        self.0.execute(sql, values).unwrap();
    }

    pub(super) fn run(&self, sql: &str) {
        self.0.execute_batch(sql).unwrap();
    }

    pub(super) fn finish(self) {
        self.run("COMMIT");
    }
}
