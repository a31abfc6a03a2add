use crate::store::PostgresStore;

metering_sql::authorization_store!(PostgresStore);

#[cfg(test)]
mod tests {
    use metering_sql::offers::claims::{STILL_FREE, free};
    use metering_sql::offers::rows::{BY_ID, BY_TX, from, select};

    use crate::schema::Schema;

    /// 60,000 authorizations that are settled, and as many that are pending: those of two are free at 50. All but the
    /// failed ones have a transaction.
    const MANY: &str = "INSERT INTO account (id, org_id, agent_name, created_at) VALUES (7, 'org_7', 'agent', 0); \
         INSERT INTO payment (id, chain_id, tx_hash, payer, recipient, token, amount, block_number, mined_at, account, \
             used_as, recorded_at) \
           SELECT n, 1, sha256(n::TEXT::BYTEA), '', '', '', '', 1, 0, 7, 'authorization', 0 \
           FROM generate_series(1, 30000) n; \
         INSERT INTO payment_authorization (id, chain_id, token, payer, nonce, recipient, amount, valid_after, \
             valid_before, signature, account, credits, received_at, claimed_until, state, failure, failed_at, \
             tx_chain_id, tx_hash) \
           SELECT n, 1, '', '', sha256(n::TEXT::BYTEA), '', '', 0, 0, '', 7, 1, 0, \
             CASE WHEN n IN (60011, 60022) THEN 60100 - n WHEN n <= 60000 THEN 0 ELSE 100 END, \
             CASE WHEN n <= 30000 THEN 'credited' WHEN n <= 60000 THEN 'failed' ELSE 'pending' END, \
             CASE WHEN n BETWEEN 30001 AND 60000 THEN 'expired' END, CASE WHEN n BETWEEN 30001 AND 60000 THEN 0 END, \
             CASE WHEN n <= 30000 THEN 1 END, CASE WHEN n <= 30000 THEN sha256(n::TEXT::BYTEA) END \
           FROM generate_series(1, 120000) n; \
         INSERT INTO authorization_submission SELECT n, 1, sha256(n::TEXT::BYTEA), '', 0 \
           FROM generate_series(1, 120000) n; \
         ANALYZE account, payment, payment_authorization, authorization_submission";

    /// The statements that run for each request with a payment, and those that run again and again, read only what they
    /// return.
    #[tokio::test(flavor = "multi_thread")]
    async fn looks_do_not_scan_authorizations() {
        let Some(schema) = Schema::new().await else { return };
        schema.run(MANY);
        let id = |number: i64| format!("(1, '', '', sha256('{number}'))");
        // the statement, its values, the row numbers that it finds
        let table = [
            (free(4), "(100)".to_owned(), "60022 60011 60001 60002"),
            (free(1), "(100)".to_owned(), "60022"),
            (free(4), "(99)".to_owned(), "60022 60011"),
            (free(4), "(77)".to_owned(), ""),
            (select(STILL_FREE), "('{60022, 60011, 60001, 7}', 99)".to_owned(), "60011 60022"),
            (select(BY_ID), id(17), "17"),
            (select(BY_ID), id(90_000), "90000"),
            (select(BY_ID), id(120_001), ""),
            (select(&from(1)), id(17), "17"),
            (select(BY_TX), "(sha256('29'), 1)".to_owned(), "29"),
        ];
        for (sql, values, found) in table {
            let look = schema.look(&sql, &values);
            let rows: Vec<&str> = look.rows.lines().filter_map(|line| line.split('|').next()).collect();
            assert_eq!(rows.join(" "), found, "{values}");
            let plan = &look.plan;
            assert!(look.pages().unwrap_or(0) < 40, "{plan}");
            assert!(!plan.contains("Seq Scan on payment") && !plan.contains("Seq Scan on auth"), "{plan}");
        }
    }
}
