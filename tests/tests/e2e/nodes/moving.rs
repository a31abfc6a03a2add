//! A service that outgrew its file: charged on SQLite, moved, and continued by several nodes on one PostgreSQL.

use std::process::{Command, Output};

use metering_tests::load::{RunningLoad, Stop, request, start};
use metering_tests::postgres::{Cluster, fresh_schema, is_skipped, schema_of};
use metering_tests::program::program;
use metering_tests::server::Server;
use metering_tests::site::{IssuedAccount, Site};

use crate::support::calendar::away_from_midnight;
use crate::support::wire::{BASE, BASE_CALL, CREDIT, amount, balance, plan_with_long_timeout, usage_events};

fn migrate(from: &Site, to: &str) -> Output {
    let mut command = Command::new(program("metering"));
    let from = format!("sqlite:{}", from.database().display());
    command.args(["admin", "migrate", "--from", &from]).env("METERING_MIGRATE_TO", to).output().unwrap()
}

/// Sends requests over several connections.
fn load(server: &Server, account: &IssuedAccount, each: u64) -> RunningLoad {
    let calls = vec![request("GET", BASE, Some(&account.api_key), &[])];
    start(plan_with_long_timeout(server.address(), 4, Stop::AfterRequests(each), calls), |_| ())
}

#[test]
fn moved_service_continues_on_several_nodes() {
    metering_tests::skip_if!(is_skipped());
    away_from_midnight();
    let old = Site::new();
    let (busy, capped) = (old.account("1"), old.account_with_caps("1", 0, 50));
    let mut server = old.server().start();
    let (first, second) = (load(&server, &busy, 100), load(&server, &capped, 30));
    assert_eq!((first.join().with_status(200), second.join().with_status(200)), (100, 30));
    let key = old.admin_json(&["account", "rotate-key", &busy.org_id])["api_key"].as_str().unwrap().to_owned();

    let url = Cluster::shared().fresh_schema();
    let refused = migrate(&old, &url);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("stop every server"), "{refused:?}");
    server.terminate();
    assert!(server.wait().success());
    let moved = migrate(&old, &url);
    assert_eq!(moved.status.code(), Some(0), "{moved:?}");

    let new = Site::on_database(url.as_str());
    let nodes = [new.server().start(), new.server().start()];
    for node in &nodes {
        let _ = node.client_with(&busy.api_key).get(BASE).expect(401);
        for (key, used) in [(&key, 100_i64), (&capped.api_key, 30)] {
            let client = node.client_with(key);
            assert_eq!(balance(&client), amount(CREDIT - used * BASE_CALL));
            assert_eq!(usage_events(&client), used.unsigned_abs());
        }
    }
    let busy = IssuedAccount { api_key: key, ..busy };
    let loads = nodes.each_ref().map(|node| [load(node, &busy, 60), load(node, &capped, 30)]);
    let accepted = loads.map(|loads| loads.map(|load| load.join().with_status(200)));
    assert_eq!(accepted[0][0] + accepted[1][0], 120);
    assert_eq!(accepted[0][1] + accepted[1][1], 20, "requests before the move count towards the daily cap");
    assert_eq!(balance(&nodes[1].client_with(&busy.api_key)), amount(CREDIT - 220 * BASE_CALL));
    new.verify();

    let stopped = old.server().run();
    assert_eq!(stopped.code, Some(1), "{stopped:?}");
    assert!(stopped.stderr.contains("this store was moved to postgres://"), "{stopped:?}");
    let again = migrate(&old, &url);
    assert_eq!(again.status.code(), Some(5), "{again:?}");
}

#[test]
fn server_does_not_start_on_an_unfinished_move() {
    let Some(url) = fresh_schema() else { return };
    let new = Site::on_database(url.as_str());
    let mut node = new.server().start();
    node.terminate();
    assert!(node.wait().success());
    let schema = schema_of(&url);
    let _ = Cluster::shared().run(&format!("UPDATE {schema}.turn SET import_owner = '\\x00'"));
    let refused = new.server().run();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("the move has not finished"), "{refused:?}");
}
