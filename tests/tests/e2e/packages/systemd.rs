//! The service under a real systemd, in a Debian that boots: the unit's settings take effect.

use std::time::{Duration, Instant};

use metering_sample::ROUTES;
use metering_tests::booted_system::BootedSystem;
use metering_tests::debian_root::DebianRoot;
use metering_tests::skipped;
use serde_json::Value;

use super::package;

const ADMIN: &str = "runuser -u metering -- metering admin --config /etc/metering/metering.toml";
const PATH: &str = "/mpp/ethPrice";
const SECRET: &str = "a secret of resolvers";
/// Restarts take two seconds; a loaded machine takes longer.
const SOON: Duration = Duration::from_secs(60);

/// A property of the service.
fn property(system: &BootedSystem, name: &str) -> String {
    system.run(&format!("systemctl show metering-server --property {name} --value")).trim().to_owned()
}

fn is_healthy(system: &BootedSystem) -> bool {
    let check = "curl --fail --silent --output /dev/null --max-time 5 http://127.0.0.1:8787/health";
    system.command(check).status().unwrap().success()
}

/// Ends the server in some way, and waits until systemd has started another, which serves.
fn restarted_after(system: &BootedSystem, end: &str) {
    let (process, restarts) = (property(system, "MainPID"), property(system, "NRestarts"));
    system.run(&format!("{end} {process}"));
    let started = Instant::now();
    while property(system, "NRestarts") == restarts || !is_healthy(system) {
        assert!(started.elapsed() < SOON, "{end}: {}", journal(system));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(property(system, "NRestarts"), (restarts.parse::<u32>().unwrap() + 1).to_string());
    let active = system.command("systemctl is-active --quiet metering-server").status().unwrap().success();
    assert!(active || property(system, "ActiveState") == "activating", "{}", journal(system));
}

fn journal(system: &BootedSystem) -> String {
    system.run("journalctl --unit metering-server --no-pager --output cat")
}

/// The price of a call.
fn price(system: &BootedSystem, key: &str) -> String {
    let call = format!("curl --fail --silent --dump-header - --header 'X-API-Key: {key}' http://127.0.0.1:8787{PATH}");
    let response = system.run(&call);
    let charged = response.lines().find_map(|line| line.strip_prefix("x-bds-credit-charged: "));
    charged.unwrap_or_else(|| panic!("{response}")).trim().to_owned()
}

/// The status of a deduction with this secret.
fn deduction(system: &BootedSystem, key: &str, secret: &str) -> String {
    system.run(&format!(
        "curl --silent --output /dev/null --write-out '%{{http_code}}' --header 'X-API-Key: {key}' \
         --header 'X-BDS-Internal-Billing-Secret: {secret}' --json '{{\"path\": \"{PATH}\", \"method\": \"GET\"}}' \
         http://127.0.0.1:8787/internal/billing/deduct"
    ))
}

fn catalogue(weight: u32) -> String {
    let mut catalogue: Value = serde_json::from_str(ROUTES).unwrap();
    let routes = catalogue["endpoints"].as_array_mut().unwrap();
    routes.iter_mut().find(|route| route["path"] == PATH).unwrap()["credit_weight"] = weight.into();
    catalogue.to_string()
}

#[test]
fn service_is_started_watched_reloaded_restarted_and_stopped_by_systemd() {
    metering_tests::skip_if!(super::skips() || skipped::by("TESTS_SKIP_SYSTEMD"));
    let root = DebianRoot::unpack(&BootedSystem::archive());
    let system = BootedSystem::boot(&root);
    let package = {
        // Not in /tmp, where the system has mounted a separate file system.
        std::fs::copy(package(), root.path("/opt/metering.deb")).unwrap();
        "/opt/metering.deb"
    };

    // Installing starts it: `systemctl start` returned, so it has said that it is ready.
    system.run(&format!("dpkg --install {package}"));
    assert_eq!(property(&system, "ActiveState"), "active", "{}", journal(&system));
    assert_eq!(property(&system, "StatusText"), "Serving requests");
    assert_eq!(property(&system, "WatchdogUSec"), "1min");
    assert_eq!(property(&system, "TimeoutStartUSec"), "infinity");
    assert!(is_healthy(&system));
    let account = system.run(&format!("{ADMIN} account create --agent-name a --credits 2 --json"));
    let account: Value = serde_json::from_str(&account).unwrap();
    let key = account["api_key"].as_str().unwrap();

    // A secret that only root can read reaches the server.
    assert_eq!(deduction(&system, key, SECRET), "404");
    let credentials = root.path("/etc/metering/credentials/billing-secret");
    std::fs::write(credentials, SECRET).unwrap();
    std::fs::write(root.path("/etc/metering/routes.json"), catalogue(5)).unwrap();
    system.run(
        "chmod 600 /etc/metering/credentials/billing-secret; cd /etc/systemd/system; mkdir metering-server.service.d
         grep -e '^.Service' -e _BILLING__INTERNAL_ /usr/share/doc/metering/examples/credentials.conf \
           >metering-server.service.d/credentials.conf
         sed -i 's|^#catalogue = .*|catalogue = \"/etc/metering/routes.json\"|' /etc/metering/metering.toml
         systemctl daemon-reload; systemctl restart metering-server",
    );
    assert_eq!(deduction(&system, key, SECRET), "200");
    assert_eq!(deduction(&system, key, "another secret, as long"), "403");

    // A reload applies new prices, and a failed one is reported.
    let process = property(&system, "MainPID");
    let before = price(&system, key);
    std::fs::write(root.path("/etc/metering/routes.json"), catalogue(10)).unwrap();
    system.run("systemctl reload metering-server");
    let started = Instant::now();
    while price(&system, key) == before {
        assert!(started.elapsed() < SOON, "{}", journal(&system));
    }
    let after = price(&system, key);
    std::fs::write(root.path("/etc/metering/routes.json"), "{").unwrap();
    system.run("systemctl reload metering-server");
    let started = Instant::now();
    while !property(&system, "StatusText").starts_with("Serving requests; the last reload failed: ") {
        assert!(started.elapsed() < SOON, "{}", journal(&system));
    }
    assert_eq!(price(&system, key), after);
    assert_eq!(property(&system, "MainPID"), process);
    std::fs::write(root.path("/etc/metering/routes.json"), catalogue(10)).unwrap();
    system.run("systemctl reload metering-server");

    restarted_after(&system, "kill -KILL");
    // The watchdog, earlier than after the unit's minute.
    std::fs::write(
        root.path("/etc/systemd/system/metering-server.service.d/watchdog.conf"),
        "[Service]\nWatchdogSec=15s\n",
    )
    .unwrap();
    system.run("systemctl daemon-reload; systemctl restart metering-server");
    restarted_after(&system, "kill -STOP");
    assert!(journal(&system).contains("Watchdog timeout (limit 15s)!"), "{}", journal(&system));
    system.run("rm /etc/systemd/system/metering-server.service.d/watchdog.conf; systemctl daemon-reload");

    // Commands next to it, as its user.
    let doctor = system.run(&format!("{ADMIN} doctor"));
    assert!(doctor.lines().all(|line| line.starts_with("ok ")), "{doctor}");
    assert!(system.run(&format!("{ADMIN} verify")).contains("Everything adds up exactly"));

    // An orderly stop leaves no write-ahead log.
    system.run("systemctl stop metering-server");
    assert_eq!((property(&system, "ActiveState"), property(&system, "Result")), ("inactive".into(), "success".into()));
    assert_eq!((property(&system, "ExecMainCode"), property(&system, "ExecMainStatus")), ("1".into(), "0".into()));
    assert_eq!(system.run("ls /var/lib/metering"), "metering.db\n");
    assert!(journal(&system).contains("shutting down: finishing accepted requests"), "{}", journal(&system));

    // It starts at boot, and has kept its data.
    drop(system);
    let system = BootedSystem::boot(&root);
    assert_eq!(property(&system, "ActiveState"), "active", "{}", journal(&system));
    assert_eq!(price(&system, key), after);
}
