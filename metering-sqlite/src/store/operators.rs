//! Implements the parts of the storage contract for operators, price versions and recurring credits, and transactions of
//! several steps.

use crate::store::SqliteStore;

metering_sql::full_store!(SqliteStore);
metering_sql::operator_store!(SqliteStore);
metering_sql::price_store!(SqliteStore);
metering_sql::refill_store!(SqliteStore);

#[cfg(test)]
mod tests {
    use metering_sql::newest::NAMED;
    use rusqlite::{Connection, StatementStatus, params};

    use crate::migrations::migrate;
    use crate::script::dialect;

    /// No matter how many accounts there are, and how many have the name.
    #[test]
    fn search_for_a_name_reads_only_what_it_returns() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let rows = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000) \
            INSERT INTO account (id, org_id, agent_name, created_at) \
            SELECT n, 'org_' || n, iif(n % 1000, 'agent-', 'Rare-') || n, 0 FROM n";
        connection.execute_batch(rows).unwrap();
        for (first, expected) in [("rare-", 20), ("agent-", 30), ("none", 0)] {
            let mut statement = connection.prepare(&dialect(NAMED)).unwrap();
            let end = format!("{first}\u{7f}");
            let read = statement.query_map(params![first, end, i64::MAX, 30], |row| row.get::<_, i64>(0));
            let found = read.unwrap().count();
            let steps = statement.get_status(StatementStatus::VmStep);
            assert!(found == expected && steps < 600, "{found} of {first}, {steps} steps");
        }
    }
}
