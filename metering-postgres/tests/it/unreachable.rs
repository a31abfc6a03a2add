//! A database that cannot be reached when a store is opened: reported within three seconds, with host and port.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use metering_postgres::PostgresStore;

/// Less than a running node would try, and enough for a busy machine.
const SOON: Duration = Duration::from_secs(9);

#[tokio::test]
async fn hosts_that_refuse_or_do_not_respond_are_named_soon() {
    // Accepts connections and never responds.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().map(|address| (silent, address)).unwrap();
    let (_listener, silent) = silent;
    // A port that was free a moment ago.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let table = [
        (format!("{closed}"), format!("at {closed}: Connection refused")),
        (format!("{silent}"), format!("at {silent}: no response")),
        (
            format!("{closed},{silent}"),
            format!("at {closed}: Connection refused (os error 111); {silent}: no response"),
        ),
    ];
    for (hosts, expected) in table {
        let config = format!("postgres://metering:secret@{hosts}/metering").parse().unwrap();
        for is_cached in [true, false] {
            let started_at = Instant::now();
            let opened = match is_cached {
                true => PostgresStore::connect(&config).await.map(drop),
                false => PostgresStore::connect_to_inspect(&config).await.map(drop),
            };
            let mut message = String::new();
            let mut cause: Option<&dyn std::error::Error> = Some(&opened.unwrap_err());
            while let Some(error) = cause {
                message = format!("{message} {error}");
                cause = error.source();
            }
            assert!(started_at.elapsed() < SOON, "{hosts}: {:?}", started_at.elapsed());
            assert!(message.contains(&expected) && message.contains("check that PostgreSQL is running"), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
