//! Notifications to a service manager (`Type=notify` of systemd), over a real socket.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use metering_tests::ports::free_address;
use metering_tests::server::{Server, ServerSetup};
use metering_tests::site::Site;
use rusqlite::Connection;

/// The service manager's end of the socket.
struct Manager(UnixDatagram);

impl Manager {
    /// A server's setup, with a service manager that waits for a sign of life for so long.
    fn of(site: &Site, watchdog: Duration) -> (Self, ServerSetup) {
        let path = site.path("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let setup = site.server().set("NOTIFY_SOCKET", path.to_str().unwrap());
        (Self(socket), setup.set("WATCHDOG_USEC", &watchdog.as_micros().to_string()))
    }

    /// The next notification within `limit`, as its lines.
    fn next(&self, limit: Duration) -> Option<Vec<String>> {
        self.0.set_read_timeout(Some(limit.max(Duration::from_millis(1)))).unwrap();
        let mut buffer = [0; 4096];
        let length = self.0.recv(&mut buffer).ok()?;
        Some(String::from_utf8(buffer[..length].to_vec()).unwrap().lines().map(str::to_owned).collect())
    }

    /// The next notification with this line.
    #[track_caller]
    fn expect(&self, line: &str, limit: Duration) -> Vec<String> {
        let started = Instant::now();
        let mut others = Vec::new();
        while let Some(lines) = self.next(limit.saturating_sub(started.elapsed())) {
            if lines.iter().any(|found| found == line) {
                return lines;
            }
            others.push(lines);
        }
        panic!("no {line} within {limit:?}, only {others:?}");
    }

    /// Whether any notification with this line arrives within `limit`.
    fn hears(&self, line: &str, limit: Duration) -> bool {
        let started = Instant::now();
        while let Some(lines) = self.next(limit.saturating_sub(started.elapsed())) {
            if lines.iter().any(|found| found == line) {
                return true;
            }
        }
        false
    }

    /// Forgets what has arrived.
    fn clear(&self) {
        while self.next(Duration::from_millis(1)).is_some() {}
    }
}

const ALIVE: &str = "WATCHDOG=1";
const READY: &str = "READY=1";
const SOON: Duration = Duration::from_secs(60);
/// A sign of life comes after each third.
const WATCHDOG: Duration = Duration::from_secs(3);

fn ready(server: &Server) -> u16 {
    server.client().get("/ready").status
}

#[test]
fn start_reload_and_stop_are_notified() {
    let site = Site::new();
    let (manager, setup) = Manager::of(&site, WATCHDOG);
    let file = site.write("metering.toml", "brand.name = 'One'\n");
    let mut server = setup.args(["--config", file.to_str().unwrap()]).start();
    manager.expect(READY, SOON);
    assert_eq!(ready(&server), 200);
    for _ in 0..3 {
        manager.expect(ALIVE, WATCHDOG);
    }

    site.write("metering.toml", "brand.name = 'Two'\n");
    server.hang_up();
    let reloading = manager.expect("RELOADING=1", SOON);
    assert!(reloading.iter().any(|line| line.starts_with("MONOTONIC_USEC=") && !line.ends_with("=0")), "{reloading:?}");
    let reloaded = manager.expect(READY, SOON);
    assert_eq!(reloaded, [READY, "STATUS=Serving requests"]);
    assert!(server.client().get("/metering").expect(200).text().contains("Two"), "the reload ended before READY=1");

    site.write("metering.toml", "nonsense = 1\n");
    server.hang_up();
    manager.expect("RELOADING=1", SOON);
    let failed = manager.expect(READY, SOON).join(" ");
    assert!(failed.contains("the last reload failed") && failed.contains("nonsense"), "{failed}");

    manager.clear();
    server.terminate();
    manager.expect("STOPPING=1", SOON);
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    assert!(!manager.hears(ALIVE, Duration::from_secs(1)), "a server that has stopped is alive");
}

#[test]
fn process_that_is_stuck_does_not_notify_the_watchdog() {
    let site = Site::new();
    let (manager, setup) = Manager::of(&site, Duration::from_millis(300));
    let server = setup.start();
    manager.expect(ALIVE, SOON);
    server.freeze(true);
    manager.clear();
    let silent = !manager.hears(ALIVE, Duration::from_secs(1));
    server.freeze(false);
    assert!(silent, "a stuck process notified the watchdog");
    manager.expect(ALIVE, SOON);
}

#[test]
fn server_without_its_database_is_not_ready_but_alive() {
    let site = Site::new();
    // A check begins after each third, and may take as long: longer than the check of the store, with time to spare.
    let watchdog = Duration::from_secs(30);
    let (manager, setup) = Manager::of(&site, watchdog);
    let server = setup.start();
    manager.expect(READY, SOON);
    let connection = Connection::open(site.database()).unwrap();
    connection.busy_timeout(Duration::from_secs(10)).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::sleep(Duration::from_secs(1)); // The last check counts for so long.
    assert_eq!(ready(&server), 503, "{}", server.log());
    manager.clear();
    for _ in 0..2 {
        manager.expect(ALIVE, watchdog);
        assert_eq!(ready(&server), 503);
    }
    connection.execute_batch("ROLLBACK").unwrap();
}

#[test]
fn chain_that_is_down_delays_the_start_only_for_a_while() {
    let site = Site::new();
    let (manager, setup) = Manager::of(&site, Duration::from_secs(60));
    let closed = free_address();
    let started = Instant::now();
    let server = setup
        .set("METERING_CHAINS__TEST__CHAIN_ID", "31337")
        .set("METERING_CHAINS__TEST__RECIPIENT", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")
        .set("METERING_CHAINS__TEST__RPC_URLS", &format!("http://{closed}"))
        .start();
    let lines = manager.expect(READY, Duration::from_secs(60));
    assert!(started.elapsed() > Duration::from_secs(9), "{:?}: ready before /ready", started.elapsed());
    assert!(lines[1].contains("Chain 31337 cannot be read"), "{lines:?}");
    assert_eq!(ready(&server), 503);
    manager.expect(ALIVE, SOON);
}

#[test]
fn mcp_alone_is_ready_when_its_service_is() {
    let site = Site::new();
    let service = site.server().start();
    let (manager, setup) = Manager::of(&site, WATCHDOG);
    let gateway = format!("http://{}", service.address());
    let mut tools = setup.set("METERING_SURFACES", "mcp").set("METERING_MCP__GATEWAY", &gateway).start();
    manager.expect(READY, SOON);
    manager.expect(ALIVE, WATCHDOG);
    tools.terminate();
    manager.expect("STOPPING=1", SOON);
    assert_eq!(tools.wait().code(), Some(0), "{}", tools.log());
}
