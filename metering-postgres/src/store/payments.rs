use crate::store::PostgresStore;

metering_sql::payment_store!(PostgresStore);

#[cfg(test)]
mod tests {
    use metering_core::PaymentStore;
    use metering_core::chains::Address;
    use metering_core::payments::PaymentTarget;
    use metering_sql::quotes::TARGETS;

    use crate::schema::Schema;

    #[tokio::test(flavor = "multi_thread")]
    async fn target_search_does_not_scan_quotes() {
        let Some(schema) = Schema::new().await else { return };
        let run = |sql: &str| schema.run(sql);
        run("INSERT INTO quote (nonce, agent_name, payer, chain_id, token, recipient, amount, plan_id, credits, \
               bonus_credits, created_at, expires_at, honoured_until, state) \
               SELECT sha256(n::TEXT::BYTEA), 'a', substr(sha256(n::TEXT::BYTEA), 1, 20), 1 + n % 2, \
                 decode(repeat('00', 20), 'hex'), decode(repeat('0' || n % 3, 20), 'hex'), \
                 substr(sha256(n::TEXT::BYTEA), 1, 16), 'p', 1, 0, 0, 0, 0, 'open' FROM generate_series(1, 20000) n; \
             ANALYZE quote");
        let target = |recipient| {
            let recipient = Address::from_bytes([recipient; 20]);
            PaymentTarget { chain_id: 1, token: Address::ZERO, recipient }
        };
        let store = schema.store().await;
        assert_eq!(store.quoted_targets(1).await.unwrap(), [target(0), target(1), target(2)]);
        let plan = run(&format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {}", TARGETS.replace("?1", "1")));
        let scans: Vec<&str> = plan.lines().filter(|line| line.contains(" on quote")).collect();
        // The first token, the next one, the first recipient of the token, and the next one of each of three targets.
        // The last seek for a token and for a recipient finds none.
        let seeks = [("1", "1"), ("0", "1"), ("1", "1"), ("1", "3")];
        assert_eq!(scans.len(), seeks.len(), "{plan}");
        for (scan, (rows, loops)) in scans.iter().zip(seeks) {
            assert!(scan.contains("Index") && scan.ends_with(&format!("loops={loops})")), "{plan}");
            let found =
                [format!("rows={rows} "), "rows=1.00 ".to_owned(), "rows=0.67 ".to_owned(), "rows=0.00 ".to_owned()];
            assert!(found.iter().any(|rows| scan.contains(rows)), "{plan}");
        }
    }
}
