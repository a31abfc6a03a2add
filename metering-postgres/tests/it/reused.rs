//! Schemas that one contract uses after the other: emptying one takes a tenth of the time that its migrations take, and
//! there is a test for each of hundreds of contracts. Migrations have separate tests (`upgrade`, `opening`).
//!
//! A schema that is lent has the rows that the migrations wrote, and no others.

use std::sync::Mutex;

use metering_postgres::PostgresStore;
use tokio_postgres::NoTls;

/// Copies the rows that the migrations wrote to the tables of another schema.
const KEEP: &str = "
    DO $$
    DECLARE
      named TEXT;
      has_rows BOOLEAN;
    BEGIN
      EXECUTE format('CREATE SCHEMA %I', current_schema() || '_kept');
      FOR named IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %I)', named) INTO has_rows;
        IF has_rows THEN
          EXECUTE format('CREATE TABLE %I.%I AS TABLE %I', current_schema() || '_kept', named, named);
        END IF;
      END LOOP;
    END $$";

/// Ends all connections of the test before, which is over but may have left a statement that runs. They are named like
/// the schema, or their role is. Then replaces all rows with the saved ones, and restarts the sequences.
const RESET: &str = "
    SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
      WHERE current_schema()::TEXT IN (application_name, usename::TEXT) AND pid <> pg_backend_pid();
    DO $$
    DECLARE
      named TEXT;
      has_rows BOOLEAN;
      used TEXT;
    BEGIN
      FOR named IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %I)', named) INTO has_rows;
        IF has_rows THEN
          used := concat_ws(', ', used, quote_ident(named));
        END IF;
      END LOOP;
      EXECUTE 'TRUNCATE ' || used || ' CASCADE';
      FOR named IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() || '_kept' LOOP
        EXECUTE format('INSERT INTO %I TABLE %I.%I', named, current_schema() || '_kept', named);
      END LOOP;
      PERFORM setval(format('%I.%I', schemaname, sequencename)::REGCLASS, 1, FALSE)
        FROM pg_sequences WHERE schemaname = current_schema();
    END $$";

/// A schema's URLs.
#[derive(Debug)]
struct Schema {
    /// For a store, with its options.
    store: String,
    /// For statements of this file, without a pooler.
    direct: String,
}

/// The schemas that no test uses now.
#[derive(Debug)]
pub(crate) struct Reused(Mutex<Vec<Schema>>);

/// A schema for one test. It is not lent again if the test fails.
#[derive(Debug)]
pub(crate) struct Lent {
    schema: Option<Schema>,
    of: &'static Reused,
}

impl Reused {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// One with a current schema and nothing in it. If there is none, `make` returns the URLs of an empty one: for a
    /// store, and without a pooler.
    pub(crate) async fn lend(&'static self, make: impl FnOnce() -> (String, String)) -> Lent {
        let free = self.0.lock().unwrap().pop();
        let schema = match free {
            Some(schema) => {
                execute(&schema.direct, RESET).await;
                schema
            }
            None => {
                let (store, direct) = make();
                drop(PostgresStore::connect(&store.parse().unwrap()).await.unwrap());
                execute(&direct, KEEP).await;
                Schema { store, direct }
            }
        };
        Lent { schema: Some(schema), of: self }
    }
}

impl Lent {
    /// A store on the schema.
    pub(crate) async fn open(&self) -> PostgresStore {
        let schema = self.schema.as_ref().expect("it is taken only when this is dropped");
        PostgresStore::connect(&schema.store.parse().unwrap()).await.unwrap()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.of.0.lock().unwrap().extend(self.schema.take());
        }
    }
}

async fn execute(url: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(sql).await.unwrap();
    drop(client);
    // The next test must not take it for a connection of this one.
    let _ = connection.await;
}
