use crate::store::PostgresStore;

metering_sql::key_store!(PostgresStore);
