//! Several servers on one PostgreSQL: any of them delivers, and each event once while nothing fails.

use std::collections::BTreeSet;
use std::time::Duration;

use metering_tests::postgres::{Cluster, is_skipped};
use metering_tests::site::Site;
use metering_tests::webhooks::Library;
use serde_json::json;

use super::{Scene, hook};

#[test]
fn two_nodes_deliver_each_event_once_and_in_order() {
    const EVENTS: usize = 30;
    if is_skipped() {
        return;
    }
    let scene = Scene::on(Site::on_database(Cluster::shared().fresh_schema()));
    let Some(mut receiver) = scene.receiver(Library::JavaScript) else { return };
    let nodes = [scene.server().start(), scene.server().start()];
    let account = scene.site.account("1");
    let clients = nodes.each_ref().map(|node| node.client_with(&account.api_key));
    let webhook = hook(&clients[0], &mut receiver, &["key.created"]);
    for number in 0..EVENTS {
        let _ = clients[number % 2].post("/keys", &json!({"name": number.to_string()})).expect(201);
    }
    let received: Vec<_> = (0..EVENTS).map(|_| receiver.next()).collect();
    assert!(received.iter().all(metering_tests::webhooks::Received::verified));
    let names: Vec<_> = received.iter().map(|received| received.body()["data"]["key_name"].clone()).collect();
    assert_eq!(names, (0..EVENTS).map(|number| json!(number.to_string())).collect::<Vec<_>>());
    assert_eq!(received.iter().map(|received| received.id().to_owned()).collect::<BTreeSet<_>>().len(), EVENTS);
    receiver.gets_nothing(Duration::from_secs(3));
    let _ = webhook.newest(&clients[1], "delivered", 1);
    scene.site.verify();
}
