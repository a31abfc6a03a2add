use crate::store::PostgresStore;

metering_sql::import_store!(PostgresStore);
