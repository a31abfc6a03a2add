use crate::store::SqliteStore;

metering_sql::hold_store!(SqliteStore);
