use crate::store::SqliteStore;

metering_sql::key_store!(SqliteStore);
