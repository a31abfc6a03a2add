use crate::store::SqliteStore;

metering_sql::import_store!(SqliteStore);
