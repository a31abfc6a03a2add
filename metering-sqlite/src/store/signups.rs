use crate::store::SqliteStore;

metering_sql::signup_store!(SqliteStore);
