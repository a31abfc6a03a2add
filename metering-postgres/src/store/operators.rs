//! Implements the parts of the storage contract for operators, price versions and recurring credits, and transactions of
//! several steps.

use crate::store::PostgresStore;

metering_sql::full_store!(PostgresStore);
metering_sql::operator_store!(PostgresStore);
metering_sql::price_store!(PostgresStore);
metering_sql::refill_store!(PostgresStore);

#[cfg(test)]
mod tests {
    use metering_sql::newest::NAMED;

    use crate::schema::Schema;
    use crate::statements::dialect;

    /// However many accounts there are. Prepared statements keep one plan for all values after a few executions.
    #[tokio::test(flavor = "multi_thread")]
    async fn search_for_a_name_uses_its_index() {
        let Some(schema) = Schema::new().await else { return };
        let run = |sql: &str| schema.run(sql);
        run("INSERT INTO account (id, org_id, agent_name, created_at) \
               SELECT n, 'org_' || n, CASE WHEN n % 1000 = 0 THEN 'Rare-' ELSE 'agent-' END || n, 0 \
               FROM generate_series(1, 20000) n; \
             ANALYZE account");
        let prepared = format!("SET plan_cache_mode = force_generic_plan; PREPARE named AS {}", dialect(NAMED));
        for (first, found) in [("rare-", 20), ("agent-", 30), ("none", 0)] {
            let execute = format!("EXECUTE named ('{first}', '{first}~', 9223372036854775807, 30)");
            assert_eq!(run(&format!("{prepared}; {execute}")).lines().count(), found, "{first}");
            let plan = run(&format!("{prepared}; EXPLAIN (COSTS OFF) {execute}"));
            assert!(plan.contains("account_name"), "{plan}");
        }
    }
}
