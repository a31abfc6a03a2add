//! The plain way to charge: one statement for each request, committed by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use metering_core::access::KeyHash;
use metering_core::{Clock, Credits, SystemClock};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls, Statement};

use super::accounts::Accounts;
use super::measured::Measured;
use crate::bench::Failure;
use crate::latency::Latencies;

/// The plain way's tables. They have the store's columns for a charge, except caps, activity and request ids, which the
/// plain way omits. They leave as much free space on their pages as the store's.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS plain_account (
  key BYTEA PRIMARY KEY,
  id BIGINT NOT NULL,
  balance BIGINT NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS plain_usage (
  account BIGINT NOT NULL,
  day BIGINT NOT NULL,
  route TEXT NOT NULL,
  calls BIGINT NOT NULL,
  amount BIGINT NOT NULL,
  PRIMARY KEY (account, day, route)
) WITH (fillfactor = 50);
INSERT INTO plain_account (key, id, balance)
  SELECT k.hash, m.account, m.balance FROM key_secret k JOIN meter m ON m.account = k.account
  ON CONFLICT (key) DO NOTHING;
ANALYZE plain_account;
";

const CHARGE: &str = "WITH charged AS (\
       UPDATE plain_account SET balance = balance - $2 WHERE key = $1 AND balance > 0 RETURNING id, balance\
     ), counted AS (\
       INSERT INTO plain_usage AS total (account, day, route, calls, amount) SELECT id, $3, $4, 1, $2 FROM charged \
       ON CONFLICT (account, day, route) DO UPDATE SET calls = total.calls + 1, amount = total.amount + $2\
     ) SELECT balance FROM charged";

const ROUTE: &str = "/mpp/ethPrice";

/// A connection with its prepared statement.
pub(super) struct Session {
    client: Client,
    statement: Statement,
}

/// Creates the tables unless they exist, and opens `sessions` connections.
pub(super) async fn connect(url: &str, sessions: usize) -> Result<Vec<Session>, Failure> {
    let mut connected = Vec::with_capacity(sessions);
    for number in 0..sessions {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        // Ignored: an error that ends the connection also reaches its client.
        tokio::spawn(async move { drop(connection.await) });
        if number == 0 {
            client.batch_execute(TABLES).await?;
        }
        let statement = client.prepare(CHARGE).await?;
        connected.push(Session { client, statement });
    }
    Ok(connected)
}

impl Session {
    /// Charges a base call to the account of a key, which has credits.
    pub(super) async fn charge(&self, key: &KeyHash) -> Result<(), Failure> {
        let (key, price) = (key.as_bytes().as_slice(), Credits::BASE_CALL.atoms());
        let day = SystemClock.now().day().unix_days();
        let charged = self.client.query_one(&self.statement, &[&key, &price, &day, &ROUTE]).await;
        Ok(charged.map(drop)?)
    }
}

/// Clients with a connection each.
pub(super) struct Plain {
    sessions: Vec<Arc<Session>>,
}

impl Plain {
    pub(super) async fn connect(accounts: &Accounts, clients: usize) -> Result<Self, Failure> {
        let sessions = connect(&accounts.url(), clients).await?;
        Ok(Self { sessions: sessions.into_iter().map(Arc::new).collect() })
    }

    /// Charges the accounts in turn for `time`, as fast as the clients can.
    pub(super) async fn run(&self, accounts: &Accounts, time: Duration) -> Result<Measured, Failure> {
        let started = Instant::now();
        self.charge_while(accounts, Arc::clone(&accounts.next_account), move |_| started.elapsed() < time).await
    }

    pub(super) async fn charge_each_once(&self, accounts: &Accounts) -> Result<Measured, Failure> {
        let count = accounts.keys.len();
        self.charge_while(accounts, Arc::default(), move |charge_number| charge_number < count).await
    }

    async fn charge_while(
        &self,
        accounts: &Accounts,
        next_account: Arc<AtomicUsize>,
        continues: impl Fn(usize) -> bool + Clone + Send + 'static,
    ) -> Result<Measured, Failure> {
        let keys: Arc<[_]> = accounts.keys.iter().map(|key| key.hash()).collect();
        let (started, mut clients) = (Instant::now(), JoinSet::new());
        for session in &self.sessions {
            let (session, keys, next_account) = (Arc::clone(session), Arc::clone(&keys), Arc::clone(&next_account));
            let continues = continues.clone();
            clients.spawn(async move {
                let mut samples = Latencies::default();
                loop {
                    let charge_number = next_account.fetch_add(1, Ordering::Relaxed);
                    if !continues(charge_number) {
                        return Ok::<_, Failure>(samples);
                    }
                    let sent = Instant::now();
                    session.charge(&keys[charge_number % keys.len()]).await?;
                    samples.record(sent.elapsed());
                }
            });
        }
        let mut all = Latencies::default();
        while let Some(samples) = clients.join_next().await {
            all.append(&samples??);
        }
        Ok(Measured::new(all, started.elapsed()))
    }

    /// Fails unless the amount debited from all balances equals the totals.
    pub(super) async fn require_balanced(&self) -> Result<(), Failure> {
        let client = &self.sessions.first().ok_or("there is no client")?.client;
        let sql = "SELECT (SELECT sum(m.purchased + m.granted) FROM meter m) - (SELECT sum(balance) FROM plain_account) \
                   = (SELECT sum(amount) FROM plain_usage)";
        if client.query_one(sql, &[]).await?.try_get::<_, bool>(0)? {
            return Ok(());
        }
        Err("the plain way's money does not add up".into())
    }
}
