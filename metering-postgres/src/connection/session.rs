//! Connections of the pool, and how statements run on them.
//!
//! Normally each statement is prepared once per connection, and a connection gets its settings when it is opened
//! (`hosts`). Behind a pooler in transaction mode, such as PgBouncer, each transaction may run on a different server
//! connection that is shared with other clients, so no state may stay on it: statements are unnamed, and each
//! transaction sets its own settings. The rest of the crate does not see the difference.

use std::fmt;

use deadpool_postgres::{Object, PoolError, StatementCache};
use futures_util::TryStreamExt;
use tokio_postgres::{Error, IsolationLevel, Row, RowStream, Statement};

use crate::connection::settings::transaction_settings;
use crate::connection::value::Values;

/// The state that may stay on a connection between two transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Statements {
    /// No other client uses the connection: statements are prepared once and kept.
    Cached,
    /// A pooler may share the connection: no state stays on it (`statement_cache=off`).
    Unnamed,
}

/// The connections of one node.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    connections: deadpool_postgres::Pool,
    statements: Statements,
}

/// A connection of the pool.
pub(crate) struct Client {
    connection: deadpool_postgres::Client,
    statements: Statements,
}

/// A transaction, rolled back when dropped.
pub(crate) struct Transaction<'t> {
    transaction: deadpool_postgres::Transaction<'t>,
    statements: Statements,
}

/// A statement that can run any number of times on one connection.
#[derive(Debug)]
pub(crate) enum Prepared<'s> {
    Named(Statement),
    /// Sent with its text each time, in the same round trip.
    Unnamed(&'s str),
}

/// An executor of statements, borrowed from a connection or a transaction.
#[derive(Clone, Copy)]
pub(crate) struct Session<'c> {
    client: &'c tokio_postgres::Client,
    cache: &'c StatementCache,
    statements: Statements,
}

impl Pool {
    pub(crate) fn new(connections: deadpool_postgres::Pool, statements: Statements) -> Self {
        Self { connections, statements }
    }

    pub(crate) async fn get(&self) -> Result<Client, PoolError> {
        Ok(Client { connection: self.connections.get().await?, statements: self.statements })
    }

    /// Closes a broken connection and all idle ones, since they are likely to be broken too.
    pub(crate) fn close(&self, client: Client) {
        client.close();
        drop(self.connections.retain(|_, _| false));
    }
}

/// A commit finds rows by key. Its plans are kept, and those that were made while a table was small would read all of it.
const BY_INDEX: &str = "SET LOCAL enable_seqscan = off";

impl Client {
    /// The SQL that begins a transaction, for callers that pipeline it with the following statements.
    pub(crate) fn begin(&self) -> String {
        match self.statements {
            Statements::Cached => format!("BEGIN ISOLATION LEVEL READ COMMITTED; {BY_INDEX}"),
            Statements::Unnamed => {
                format!("BEGIN ISOLATION LEVEL READ COMMITTED; {BY_INDEX}; {}", transaction_settings())
            }
        }
    }

    /// Whether the settings of `hosts` apply to every statement, not only within a transaction.
    pub(crate) fn keeps_settings(&self) -> bool {
        self.statements == Statements::Cached
    }

    /// Begins a transaction that writes.
    pub(crate) async fn transaction(&mut self) -> Result<Transaction<'_>, Error> {
        let statements = self.statements;
        let transaction = self.connection.transaction().await?;
        Transaction { transaction, statements }.with_settings().await
    }

    /// Begins a transaction that reads one snapshot.
    pub(crate) async fn snapshot(&mut self) -> Result<Transaction<'_>, Error> {
        let statements = self.statements;
        let builder = self.connection.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
        let transaction = builder.read_only(true).start().await?;
        Transaction { transaction, statements }.with_settings().await
    }

    /// Closes the connection instead of returning it to the pool.
    pub(crate) fn close(self) {
        drop(Object::take(self.connection));
    }

    /// Takes the connection out of the pool, which opens another one in its place.
    pub(crate) fn leave_pool(self) -> deadpool_postgres::ClientWrapper {
        Object::take(self.connection)
    }
}

impl<'t> Transaction<'t> {
    async fn with_settings(self) -> Result<Self, Error> {
        if self.statements == Statements::Unnamed {
            self.transaction.batch_execute(&transaction_settings()).await?;
        }
        Ok(self)
    }

    pub(crate) async fn commit(self) -> Result<(), Error> {
        self.transaction.commit().await
    }
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("statements", &self.statements).finish_non_exhaustive()
    }
}

/// A connection, or a transaction on one.
pub(crate) trait GenericClient: Sync {
    /// An executor of statements.
    fn session(&self) -> Session<'_>;

    /// Prepares a statement, unless it is already prepared.
    fn prepare<'s>(&'s self, sql: &'s str) -> impl Future<Output = Result<Prepared<'s>, Error>> + Send {
        self.session().prepare(sql)
    }

    /// The rows of a statement, as they arrive.
    fn stream(
        &self,
        statement: &Prepared<'_>,
        values: Values<'_>,
    ) -> impl Future<Output = Result<RowStream, Error>> + Send {
        self.session().stream(statement, values)
    }

    /// The rows of a statement.
    fn query(
        &self,
        statement: &Prepared<'_>,
        values: Values<'_>,
    ) -> impl Future<Output = Result<Vec<Row>, Error>> + Send {
        self.session().query(statement, values)
    }

    /// Runs a statement and returns how many rows it changed.
    fn execute(&self, statement: &Prepared<'_>, values: Values<'_>) -> impl Future<Output = Result<u64, Error>> + Send {
        self.session().execute(statement, values)
    }

    /// Like [`GenericClient::execute`], if there is a statement to run.
    fn execute_if_any(
        &self,
        statement: Option<&Prepared<'_>>,
        values: Values<'_>,
    ) -> impl Future<Output = Result<u64, Error>> + Send {
        let session = self.session();
        async move {
            match statement {
                Some(statement) => session.execute(statement, values).await,
                None => Ok(0),
            }
        }
    }

    /// Runs statements without values, one after the other.
    fn batch_execute(&self, sql: &str) -> impl Future<Output = Result<(), Error>> + Send {
        self.session().client.batch_execute(sql)
    }
}

impl GenericClient for Client {
    fn session(&self) -> Session<'_> {
        let (client, cache) = (&**self.connection, &self.connection.statement_cache);
        Session { client, cache, statements: self.statements }
    }
}

impl GenericClient for Transaction<'_> {
    fn session(&self) -> Session<'_> {
        let (client, cache) = (self.transaction.client(), &self.transaction.statement_cache);
        Session { client, cache, statements: self.statements }
    }
}

impl<'c> Session<'c> {
    async fn prepare<'s>(self, sql: &'s str) -> Result<Prepared<'s>, Error> {
        match self.statements {
            Statements::Cached => Ok(Prepared::Named(self.cache.prepare(self.client, sql).await?)),
            Statements::Unnamed => Ok(Prepared::Unnamed(sql)),
        }
    }

    async fn stream(self, statement: &Prepared<'_>, values: Values<'_>) -> Result<RowStream, Error> {
        match statement {
            Prepared::Named(statement) => {
                let values = values.iter().map(|value| value.as_sql());
                self.client.query_raw(statement, values).await
            }
            Prepared::Unnamed(sql) => {
                let values = values.iter().map(|value| (value.as_sql(), value.sql_type()));
                self.client.query_typed_raw(sql, values).await
            }
        }
    }

    async fn query(self, statement: &Prepared<'_>, values: Values<'_>) -> Result<Vec<Row>, Error> {
        self.stream(statement, values).await?.try_collect().await
    }

    async fn execute(self, statement: &Prepared<'_>, values: Values<'_>) -> Result<u64, Error> {
        match statement {
            Prepared::Named(statement) => {
                self.client.execute_raw(statement, values.iter().map(|value| value.as_sql())).await
            }
            Prepared::Unnamed(sql) => {
                let values: Vec<_> = values.iter().map(|value| (value.as_sql(), value.sql_type())).collect();
                self.client.execute_typed(sql, &values).await
            }
        }
    }
}
