//! Webhooks on the command line: made, tested, rotated and resent, with a receiver that verifies with the official
//! library.

use metering_tests::server::Server;
use metering_tests::site::Site;
use metering_tests::webhooks::{Library, Receiver, Reply};
use serde_json::Value;

use super::lifecycle::terminal::Terminal;
use crate::support::certificates::Loopback;
use crate::support::wait::until;

/// A site whose server may send webhooks to this machine.
struct Scene {
    site: Site,
    server: Server,
    files: Loopback,
}

impl Scene {
    fn new() -> Self {
        let (site, files) = (Site::new(), Loopback::new());
        let authority = files.authority.display().to_string();
        let server = site.server().set("METERING_WEBHOOKS__ALLOWED_NETWORKS", "127.0.0.0/8");
        let server = server.set("METERING_WEBHOOKS__CA_FILE", &authority).start();
        Self { site, server, files }
    }

    fn terminal(&self, key: &str) -> Terminal {
        let url = format!("http://{}", self.server.address());
        let terminal = Terminal::new(self.site.path("home")).set("METERING_CLIENT_URL", &url);
        terminal.set("METERING_CLIENT_API_KEY", key)
    }
}

/// The newest delivery to a webhook.
fn newest(terminal: &Terminal, id: &str) -> Value {
    terminal.json(&["webhooks", "deliveries", id])["data"][0].clone()
}

/// Waits until the newest delivery to a webhook is of this kind and in this state.
#[track_caller]
fn wait_for(terminal: &Terminal, id: &str, kind: &str, state: &str) {
    until(&format!("{kind} is {state}"), || {
        let newest = newest(terminal, id);
        newest["event"]["type"] == kind && newest["state"] == state
    });
}

#[test]
fn a_webhook_lives_on_the_command_line() {
    let scene = Scene::new();
    let Some(mut receiver) = Receiver::start(Library::JavaScript, Some(&scene.files.identity)) else { return };
    let account = scene.site.account("2");
    let terminal = scene.terminal(&account.api_key);
    let url = receiver.url("localhost", "/hooks");
    let made = terminal.json(&["webhooks", "create", &url, "--events", "balance.low,key.created"]);
    let (id, secret) = (made["data"]["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    receiver.set_secrets(&[secret]);

    // A test event reaches it, and so do the events that it subscribes to, in order.
    let stdout = terminal.run_successfully(&["webhooks", "test", id]).stdout;
    assert!(stdout.contains(&format!("metering webhooks deliveries {id}")), "{stdout}");
    let test = receiver.next();
    assert!(test.verified() && test.body()["type"] == "webhook.test", "{test:?}");
    wait_for(&terminal, id, "webhook.test", "delivered");
    let _ = terminal.run_successfully(&["keys", "create", "--name", "crawler", "--limit", "1", "--alert-below", "0.5"]);
    let key = receiver.next();
    assert!(key.verified() && key.body()["data"]["key_name"] == "crawler", "{key:?}");
    let set = terminal.run_successfully(&["alert", "set", "1.9999"]).stdout;
    assert!(set.contains("falls below 1.9999 credits"), "{set}");
    let _ = terminal.run_successfully(&["call", "/mpp/ethPrice"]);
    let low = receiver.next();
    assert!(low.verified() && low.body()["type"] == "balance.low", "{low:?}");
    let amounts = [&low.body()["data"]["balance"], &low.body()["data"]["threshold"]].map(Value::to_string);
    assert_eq!(amounts, ["1.9993055556", "1.9999"]);
    wait_for(&terminal, id, "balance.low", "delivered");
    let balance = terminal.run_successfully(&["balance"]).stdout;
    assert!(balance.contains("Alert below  1.9999\n"), "{balance}");
    let events = terminal.run_successfully(&["events"]).stdout;
    let kinds: Vec<_> = events.lines().skip(1).map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(kinds[..3], ["balance.low", "key.created", "webhook.test"], "{events}");

    // For a while, requests carry the signatures of both secrets.
    let rotated = terminal.json(&["webhooks", "rotate", id]);
    let second = rotated["secret"].as_str().unwrap().to_owned();
    for secrets in [[secret], [second.as_str()]] {
        receiver.set_secrets(&secrets);
        let _ = terminal.run_successfully(&["webhooks", "test", id]);
        let signed = receiver.next();
        assert!(signed.verified() && signed.signatures() == 2, "{signed:?}");
        wait_for(&terminal, id, "webhook.test", "delivered");
    }

    // The receiver wants no more, until the webhook is switched on again.
    receiver.respond(&[Reply::status(410)]);
    let _ = terminal.run_successfully(&["webhooks", "test", id]);
    let first = receiver.next();
    wait_for(&terminal, id, "webhook.test", "parked");
    assert!(terminal.run_successfully(&["webhooks", "list"]).stdout.contains(" gone "));
    let _ = terminal.run_successfully(&["webhooks", "set", id, "--enable"]);
    let delivery = newest(&terminal, id)["id"].to_string();
    let parked = terminal.run_successfully(&["webhooks", "deliveries", id, "--state", "parked"]).stdout;
    assert!(parked.lines().nth(1).unwrap().contains("410"), "{parked}");
    let _ = terminal.run_successfully(&["webhooks", "resend", id, &delivery]);
    let again = receiver.next();
    assert!(again.verified() && again.id() == first.id(), "{again:?}");
    wait_for(&terminal, id, "webhook.test", "delivered");

    let _ = terminal.run_successfully(&["webhooks", "delete", id, "--yes"]);
    assert_eq!(terminal.run(&["webhooks", "show", id]).code, Some(4));
    let log = scene.server.log();
    assert!(!log.contains(&secret["whsec_".len()..]) && !log.contains(&second["whsec_".len()..]), "{log}");
    scene.site.verify();
}
