use crate::store::SqliteStore;

metering_sql::browser_session_store!(SqliteStore);
metering_sql::child_account_store!(SqliteStore);
metering_sql::log_store!(SqliteStore);
metering_sql::member_store!(SqliteStore);
metering_sql::oauth_store!(SqliteStore);
metering_sql::signup_store!(SqliteStore);
metering_sql::usage_sink_store!(SqliteStore);
