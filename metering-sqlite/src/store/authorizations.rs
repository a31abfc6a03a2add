use crate::store::SqliteStore;

metering_sql::authorization_store!(SqliteStore);

#[cfg(test)]
mod tests {
    use metering_sql::offers::{claims, places, rows};
    use metering_sql::transfer::GasPlacesRecord;
    use metering_sql::{Record, keys};
    use rusqlite::{Connection, StatementStatus, params};

    use crate::migrations::migrate;
    use crate::script::dialect;

    /// No matter how many authorizations and places are kept, and how many secrets were replaced.
    #[test]
    fn lists_and_lookups_use_an_index() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let by_id = "payment_authorization USING INDEX sqlite_autoindex_payment_authorization_1";
        let queries = [
            (claims::free(8), "INDEX payment_authorization_claim (claimed_until<?)"),
            (rows::select(claims::STILL_FREE), "payment_authorization USING INTEGER PRIMARY KEY (rowid=?)"),
            (rows::select(rows::BY_ID), by_id),
            (
                rows::select(&rows::from(8)),
                "INDEX sqlite_autoindex_payment_authorization_1 ((chain_id,token,payer,nonce)>",
            ),
            (rows::select(rows::BY_TX), "INDEX payment_authorization_tx (tx_hash=? AND tx_chain_id=?)"),
            (rows::select(rows::BY_IDENTIFIER), "INDEX payment_authorization_identifier (payer=? AND identifier=?)"),
            (rows::select(rows::OPEN_USAGE), "INDEX payment_authorization_open_usage (payer=?)"),
            (rows::select(rows::UNPAID_OF_PAYER), "INDEX payment_authorization_unpaid (payer=?)"),
            (rows::select(rows::BY_ID), "s USING PRIMARY KEY (payment_authorization=?)"),
            (places::TAKE_FREE.to_owned(), "USING PRIMARY KEY (chain_id=? AND wallet=? AND nonce=?)"),
            (places::TAKE_FREE.to_owned(), "USING PRIMARY KEY (chain_id=? AND wallet=? AND nonce>?)"),
            (places::GIVEN_BACK.to_owned(), "free_gas_place USING PRIMARY KEY (chain_id=? AND wallet=?)"),
            (
                format!("{} {}", GasPlacesRecord::TABLE.select(), places::OF_WALLET),
                "gas_place USING PRIMARY KEY (chain_id=? AND wallet=?)",
            ),
            (keys::LASTING_SECRETS.to_owned(), "s USING INDEX key_secret_live (account=? AND key=?)"),
        ];
        for (sql, expected) in queries {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", dialect(&sql))).unwrap();
            let values = rusqlite::params_from_iter(vec![None::<i64>; statement.parameter_count()]);
            let steps = statement.query_map(values, |row| row.get::<_, String>(3)).unwrap();
            let steps: Vec<_> = steps.map(Result::unwrap).collect();
            assert!(steps.iter().any(|step| step.starts_with("SEARCH") && step.contains(expected)), "{sql}: {steps:?}");
            // A list that is a parameter is scanned.
            let is_scan = |step: &String| step.starts_with("SCAN") && !step.contains("json_each");
            assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE") || is_scan(step)), "{sql}: {steps:?}");
        }
    }

    /// No matter how many were credited, and how many are claimed.
    #[test]
    fn a_look_reads_only_what_is_free() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let rows = "PRAGMA foreign_keys = off; \
            WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10000) \
            INSERT INTO payment_authorization (chain_id, token, payer, nonce, recipient, amount, valid_after, \
              valid_before, signature, account, credits, received_at, claimed_until, state, tx_chain_id, tx_hash) \
            SELECT n, zeroblob(20), zeroblob(20), zeroblob(32), zeroblob(20), zeroblob(16), 0, 0, x'00', 1, 1, 0, n, \
              iif(n % 2, 'pending', 'credited'), iif(n % 2, NULL, n), iif(n % 2, NULL, zeroblob(32)) FROM n";
        connection.execute_batch(rows).unwrap();
        for (now, expected) in [(0, 0), (1, 1), (10, 5), (9_999, 8)] {
            let mut statement = connection.prepare(&dialect(&claims::free(8))).unwrap();
            let found = statement.query_map(params![now], |row| row.get::<_, i64>(0)).unwrap().count();
            let steps = statement.get_status(StatementStatus::VmStep);
            assert!(found == expected && steps < 120, "{found} at {now}, {steps} steps");
        }
    }
}
