//! Tests of the plans of shared statements.

use metering_sql::due::heads;

use crate::schema::Schema;

/// No matter how many lines wait for a later time, and how many deliveries wait behind their heads.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_reads_only_what_is_due() {
    let Some(schema) = Schema::new().await else { return };
    let run = |sql: &str| schema.run(sql);
    // 30,000 lines of the operator and as many of customers, with two deliveries each. The heads of three are due.
    run("INSERT INTO account (id, org_id, agent_name, created_at) VALUES (7, 'org_7', 'agent', 0); \
         INSERT INTO webhook (id, public_id, account, url, kinds, state, created_at) \
           SELECT n, decode(lpad(to_hex(n), 32, '0'), 'hex'), CASE WHEN n > 0 THEN 7 END, \
             'https://hooks.example.com/', '', 'active', 0 FROM generate_series(0, 30000) n; \
         INSERT INTO event SELECT n, n, 'key.created', '{}', 0 FROM generate_series(1, 60000) n; \
         INSERT INTO delivery (id, webhook, event, account, state, attempts, since, next_at, is_head) \
           SELECT h * 100000 + n, n % 30001 * h, n, n % 30001, 'pending', 0, 0, \
             CASE WHEN n IN (11, 22, 33) THEN 60 - n WHEN n <= 30000 THEN 100 ELSE 0 END, n <= 30000 \
           FROM generate_series(1, 60000) n, generate_series(0, 1) h WHERE n <> 30001; \
         ANALYZE delivery, event, webhook");
    // operator, now, limit, state of the operator's webhook, found
    let table = [
        (true, 60, 4, "active", "33 22 11"),
        (true, 60, 2, "active", "33 22"),
        (true, 20, 4, "active", ""),
        (true, 100, 4, "active", "33 22 11 1"),
        (true, 100, 4, "disabled", ""),
        (false, 60, 4, "disabled", "100033 100022 100011"),
        (false, 20, 4, "active", ""),
        (false, 100, 4, "active", "100033 100022 100011 100001"),
    ];
    for (is_operator, now, limit, state, found) in table {
        run(&format!("UPDATE webhook SET state = '{state}' WHERE id = 0"));
        let values = format!("({now}, {is_operator})");
        let look = schema.look(&heads(limit), &values);
        assert_eq!(look.rows.lines().collect::<Vec<_>>().join(" "), found, "{values}");
        let plan = &look.plan;
        assert!(look.pages().unwrap_or(0) < 12 && !plan.contains("Sort"), "{values}: {plan}");
    }
}
