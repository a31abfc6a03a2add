use crate::store::PostgresStore;

metering_sql::signup_store!(PostgresStore);
