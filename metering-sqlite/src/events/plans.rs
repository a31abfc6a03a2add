//! Tests of the plans of shared statements.

use metering_sql::outbox::RECEIVERS;
use metering_sql::{deliveries, due, events, lines, search, webhook_deletion, webhook_health, webhooks};
use rusqlite::{Connection, StatementStatus, params};

use crate::events::lists;
use crate::migrations::migrate;
use crate::script::dialect;

/// No matter how many events and deliveries are kept, and how many webhooks others have.
#[test]
fn lists_and_lookups_use_an_index() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection).unwrap();
    let in_line = "SEARCH p USING COVERING INDEX delivery_line (webhook=? AND account=?)";
    let by_id = "SEARCH delivery USING INTEGER PRIMARY KEY (rowid=?)";
    let counted = "SEARCH delivery USING COVERING INDEX delivery_state (state=?)";
    let of_due = "SEARCH d USING INDEX delivery_due (<expr>=? AND next_at<?)";
    let ended = "SEARCH delivery USING COVERING INDEX delivery_ended (webhook=? AND state=? AND last_at>?)";
    let mut queries = vec![
        (RECEIVERS.to_owned(), "SEARCH webhook USING INDEX webhook_owner (<expr>=?)"),
        (
            format!("SELECT number FROM event {}", events::LISTED),
            "SEARCH event USING COVERING INDEX event_account (account=? AND number<?)",
        ),
        (due::heads(8), of_due),
        (due::candidates(), "SEARCH d USING INDEX delivery_due (<expr>=? AND next_at>? AND next_at<?)"),
        (due::still_due(), by_id),
        (due::BACKLOG.to_owned(), counted),
        (lines::marking(), in_line),
        (lines::marking(), by_id),
        (lines::unmarking(), in_line),
        (lines::unmarking(), by_id),
        (
            format!("SELECT 1 FROM webhook {}", webhooks::LISTED),
            "SEARCH webhook USING COVERING INDEX webhook_owner (<expr>=?)",
        ),
        (webhooks::by_id(), "SEARCH webhook USING INDEX sqlite_autoindex_webhook_1 (public_id=?)"),
        (webhook_deletion::portion(), "SEARCH delivery USING COVERING INDEX delivery_webhook (webhook=?)"),
        (webhook_health::waiting(), "SEARCH delivery USING COVERING INDEX delivery_line (webhook=?)"),
        (webhook_health::first(), "SEARCH delivery USING INDEX delivery_line (webhook=?)"),
        (webhook_health::last_delivered(), ended),
        (webhook_health::delivered_since(), ended),
        (
            webhook_health::failed_since(),
            "SEARCH delivery USING INDEX delivery_ended (webhook=? AND state=? AND last_at>?)",
        ),
        (deliveries::select(search::FAILING), "SEARCH delivery USING INDEX delivery_failing (since>?)"),
    ];
    queries.extend(lists::queries());
    for (sql, expected) in queries {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", dialect(&sql))).unwrap();
        let values = rusqlite::params_from_iter(vec![None::<i64>; statement.parameter_count()]);
        let steps = statement.query_map(values, |row| row.get::<_, String>(3)).unwrap();
        let steps: Vec<_> = steps.map(Result::unwrap).collect();
        assert!(steps.iter().any(|step| step.starts_with(expected)), "{sql}: {steps:?}");
        // Only the few webhooks of an account may be sorted.
        assert!(sql == RECEIVERS || !steps.iter().any(|step| step.contains("TEMP B-TREE")), "{sql}: {steps:?}");
        // A list that is a parameter is scanned, and so is a page of candidates.
        let is_bounded =
            |step: &str| step == "SCAN d" || ["json_each", "CONSTANT ROW"].iter().any(|part| step.contains(part));
        let scans: Vec<_> = steps.iter().filter(|step| step.starts_with("SCAN") && !is_bounded(step)).collect();
        assert!(scans.is_empty(), "{sql}: {steps:?}");
    }
}

/// No matter how many accounts wait for a failing webhook, and how many deliveries wait behind them.
#[test]
fn a_look_reads_only_what_is_due() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection).unwrap();
    let lines = "PRAGMA foreign_keys = off; \
        INSERT INTO webhook (id, public_id, url, kinds, state, created_at) VALUES (0, zeroblob(16), '', '', 'active', 0); \
        WITH RECURSIVE line (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM line WHERE n < 10000) \
        INSERT INTO delivery (webhook, event, account, state, attempts, since, next_at, is_head) \
          SELECT CASE WHEN n % 2 THEN 0 ELSE n END, n + step * 100000, n, 'pending', 1, 0, step * 5000 + n, step = 1 \
          FROM line, (SELECT 1 AS step UNION SELECT 2 UNION SELECT 3)";
    connection.execute_batch(lines).unwrap();
    let look = |now: i64, is_operator: bool| {
        let mut statement = connection.prepare(&dialect(&due::heads(10))).unwrap();
        let found = statement.query_map(params![now, is_operator], |row| row.get::<_, i64>(0)).unwrap().count();
        (found, statement.get_status(StatementStatus::VmStep))
    };
    // The head of line n is due at 5,000 + n; odd lines are the operator's.
    let table = [(5_000, [0, 0]), (5_002, [1, 1]), (5_010, [5, 5]), (50_000, [10, 10])];
    for (now, expected) in table {
        for (is_operator, count) in [true, false].into_iter().zip(expected) {
            let (found, steps) = look(now, is_operator);
            assert_eq!(found, count, "{is_operator} at {now}");
            assert!(steps < 200, "{steps} steps: {is_operator} at {now}");
        }
    }
    connection.execute("UPDATE webhook SET state = 'disabled'", []).unwrap();
    assert_eq!(look(50_000, true).0, 0, "it is being removed");
}
