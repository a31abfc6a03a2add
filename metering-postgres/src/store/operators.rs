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

    /// No matter how many accounts there are.
    #[tokio::test(flavor = "multi_thread")]
    async fn search_for_a_name_uses_its_index() {
        let Some(schema) = Schema::new().await else { return };
        schema.run(
            "INSERT INTO account (id, org_id, agent_name, created_at) \
               SELECT n, 'org_' || n, CASE WHEN n % 1000 = 0 THEN 'Rare-' ELSE 'agent-' END || n, 0 \
               FROM generate_series(1, 20000) n; \
             ANALYZE account",
        );
        for (first, found) in [("rare-", 20), ("agent-", 30), ("none", 0)] {
            let look = schema.look(NAMED, &format!("('{first}', '{first}~', 9223372036854775807, 30)"));
            assert_eq!(look.rows.lines().count(), found, "{first}");
            assert!(look.plan.contains("account_name"), "{}", look.plan);
        }
    }
}
