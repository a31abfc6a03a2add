use crate::store::PostgresStore;

metering_sql::browser_session_store!(PostgresStore);
metering_sql::child_account_store!(PostgresStore);
metering_sql::log_store!(PostgresStore);
metering_sql::member_store!(PostgresStore);
metering_sql::oauth_store!(PostgresStore);
metering_sql::signup_store!(PostgresStore);
metering_sql::usage_sink_store!(PostgresStore);
