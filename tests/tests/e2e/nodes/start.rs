//! Nodes that start: many at once on an empty database, and on schemas of other programs or versions.

use std::thread;

use metering_tests::postgres::{Cluster, is_skipped};
use metering_tests::server::Server;
use metering_tests::site::Site;

use crate::support::wire::{BASE, usage_events};

#[test]
fn twenty_nodes_start_together_on_an_empty_database() {
    metering_tests::skip_if!(is_skipped());
    let cluster = Cluster::start(&["fsync=off"]);
    let site = Site::on_database(format!("{}?pool_size=4", cluster.url()));
    let nodes: Vec<Server> = thread::scope(|scope| {
        let starting: Vec<_> = (0..20).map(|_| scope.spawn(|| site.server().start())).collect();
        starting.into_iter().map(|starting| starting.join().unwrap()).collect()
    });
    let account = site.account("1");
    for node in &nodes {
        let _ = node.client_with(&account.api_key).get(BASE).expect(200);
    }
    assert_eq!(usage_events(&nodes[0].client_with(&account.api_key)), 20);
    assert_eq!(cluster.run("SELECT count(*) FROM metering_schema"), "1");
    site.verify();
}

#[test]
fn unknown_schema_is_refused_and_left_unchanged() {
    metering_tests::skip_if!(is_skipped());
    let cluster = Cluster::start(&["fsync=off"]);
    let site = Site::on_database(cluster.url());
    // what another program did, part of the message, a query of the state afterwards and its result
    let table = [
        (
            "CREATE TABLE account (name TEXT); INSERT INTO account VALUES ('theirs')",
            "tables of another program",
            ("SELECT name FROM account WHERE to_regclass('metering_schema') IS NULL", "theirs"),
        ),
        (
            "DROP TABLE account; \
             CREATE TABLE metering_schema (id SMALLINT PRIMARY KEY, version BIGINT NOT NULL); \
             INSERT INTO metering_schema VALUES (1, 1000)",
            "use a newer program",
            ("SELECT version FROM metering_schema", "1000"),
        ),
    ];
    for (sql, expected_text, (query, left)) in table {
        cluster.run(sql);
        for output in [site.server().run(), site.admin(&["account", "create", "--agent-name", "a"])] {
            assert_eq!(output.code, Some(1), "{output:?}");
            assert!(output.stderr.contains(expected_text), "{output:?}");
        }
        assert_eq!(cluster.run(query), left);
        assert_eq!(cluster.run("SELECT count(*) FROM pg_tables WHERE tablename = 'meter'"), "0");
    }
}
