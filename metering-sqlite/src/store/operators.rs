//! Implements the parts of the storage contract for operators, price versions and recurring credits, and transactions of
//! several steps.

use crate::store::SqliteStore;

metering_sql::full_store!(SqliteStore);
metering_sql::operator_store!(SqliteStore);
metering_sql::price_store!(SqliteStore);
metering_sql::refill_store!(SqliteStore);
