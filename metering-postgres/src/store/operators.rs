//! Implements the parts of the storage contract for operators, price versions and recurring credits, and transactions of
//! several steps.

use crate::store::PostgresStore;

metering_sql::full_store!(PostgresStore);
metering_sql::operator_store!(PostgresStore);
metering_sql::price_store!(PostgresStore);
metering_sql::refill_store!(PostgresStore);
