//! Implements the parts of the storage contract for operators, price versions and recurring credits.

use crate::store::SqliteStore;

metering_sql::operator_store!(SqliteStore);
metering_sql::price_store!(SqliteStore);
metering_sql::refill_store!(SqliteStore);
