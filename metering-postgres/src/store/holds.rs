use crate::store::PostgresStore;

metering_sql::hold_store!(PostgresStore);
