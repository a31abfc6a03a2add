//! Which connections are admitted at the limit, and which are closed for them.

use super::*;
use crate::http::connection::MIN_AGE;

const A: &str = "10.0.0.1";
const B: &str = "10.0.0.2";
const C: &str = "10.0.0.3";

fn connections(max: usize, max_per_address: usize) -> Arc<Connections> {
    Arc::new(Connections::new(max, max_per_address))
}

/// A slot, if there is one without waiting. The connection counts as no longer new.
async fn admit(connections: &Arc<Connections>, peer: &str) -> Option<ConnectionPermit> {
    let permit = admit_now(connections, peer).await;
    tokio::time::sleep(MIN_AGE).await;
    permit
}

async fn admit_now(connections: &Arc<Connections>, peer: &str) -> Option<ConnectionPermit> {
    let admitted = connections.admit(peer.parse().unwrap(), false);
    tokio::time::timeout(RETRY / 2, admitted).await.ok().flatten()
}

/// A connection that is serving a request.
async fn busy(connections: &Arc<Connections>, peer: &str) -> ConnectionPermit {
    let permit = admit(connections, peer).await.unwrap();
    assert!(permit.connection.received());
    permit
}

async fn is_cut(permit: &ConnectionPermit) -> bool {
    permit.connection.run(std::future::ready(())).await.is_none()
}

async fn cut(permits: &[&ConnectionPermit]) -> Vec<bool> {
    let mut cut = Vec::new();
    for permit in permits {
        cut.push(is_cut(permit).await);
    }
    cut
}

#[tokio::test(start_paused = true)]
async fn address_at_its_limit_loses_its_oldest_idle_connection() {
    let connections = connections(100, 3);
    let serving = busy(&connections, A).await;
    let (older, newer) = (admit(&connections, A).await.unwrap(), admit(&connections, A).await.unwrap());
    let newest = busy(&connections, A).await;
    assert_eq!(cut(&[&serving, &older, &newer, &newest]).await, [false, true, false, false]);
    let last = busy(&connections, A).await;
    assert!(is_cut(&newer).await);
    assert!(admit(&connections, A).await.is_none(), "all are busy");
    assert!(admit(&connections, B).await.is_some(), "other addresses are not affected");
    drop(last);
    assert!(admit(&connections, A).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn new_connection_is_not_closed_for_the_next() {
    let connections = connections(100, 2);
    let (first, second) = (admit_now(&connections, A).await.unwrap(), admit_now(&connections, A).await.unwrap());
    assert!(admit_now(&connections, A).await.is_none());
    tokio::time::sleep(MIN_AGE).await;
    assert!(admit_now(&connections, A).await.is_some());
    assert_eq!(cut(&[&first, &second]).await, [true, false]);
}

#[tokio::test(start_paused = true)]
async fn full_server_closes_a_connection_of_the_heaviest_address() {
    let connections = connections(5, 100);
    let of_a = [admit(&connections, A).await.unwrap(), admit(&connections, A).await.unwrap()];
    let of_b =
        [busy(&connections, B).await, admit(&connections, B).await.unwrap(), admit(&connections, B).await.unwrap()];
    let newest = admit(&connections, C).await.unwrap();
    assert_eq!(cut(&[&of_b[0], &of_b[1], &of_b[2]]).await, [false, true, false]);
    assert_eq!(cut(&[&of_a[0], &of_a[1], &newest]).await, [false; 3]);
}

#[tokio::test(start_paused = true)]
async fn heavier_address_cannot_displace_a_lighter_one() {
    let connections = connections(4, 100);
    let of_a = [busy(&connections, A).await, busy(&connections, A).await];
    let of_b = [admit(&connections, B).await.unwrap(), admit(&connections, B).await.unwrap()];
    // A would have three and B has two, so A could only take from itself.
    assert!(admit(&connections, A).await.is_none());
    assert_eq!(cut(&[&of_a[0], &of_a[1], &of_b[0], &of_b[1]]).await, [false; 4]);
    assert!(admit(&connections, C).await.is_some());
    assert_eq!(cut(&[&of_b[0], &of_b[1]]).await, [true, false]);
}

#[tokio::test(start_paused = true)]
async fn connection_waits_while_all_are_busy_and_gets_the_first_permit() {
    let connections = connections(2, 100);
    let (first, _second) = (busy(&connections, A).await, busy(&connections, B).await);
    let waiting = {
        let connections = Arc::clone(&connections);
        tokio::spawn(async move { connections.admit(C.parse().unwrap(), false).await.is_some() })
    };
    tokio::time::sleep(10 * RETRY).await;
    assert!(!waiting.is_finished());
    drop(first);
    assert!(waiting.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn stalled_client_is_closed_to_make_room() {
    let connections = connections(1, 100);
    let stalled = busy(&connections, A).await;
    stalled.connection.stalls();
    let started = Instant::now();
    assert!(connections.admit(B.parse().unwrap(), false).await.is_some());
    assert!(is_cut(&stalled).await);
    assert!((1..=3).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn trusted_proxy_has_no_limit_and_loses_no_connection() {
    let connections = connections(3, 1);
    let proxy: IpAddr = A.parse().unwrap();
    let first = connections.admit(proxy, true).await.unwrap();
    let second = connections.admit(proxy, true).await.unwrap();
    let client = admit(&connections, B).await.unwrap();
    let third = connections.admit(proxy, true).await.unwrap();
    assert_eq!(cut(&[&first, &second, &client, &third]).await, [false, false, true, false]);
    assert!(admit(&connections, C).await.is_none(), "it waits, since nothing can be closed");
}

#[tokio::test(start_paused = true)]
async fn ipv6_neighbours_count_as_one_address() {
    let connections = connections(100, 1);
    let first = admit(&connections, "2001:db8::1").await.unwrap();
    let _neighbour = admit(&connections, "2001:db8::2").await.unwrap();
    assert!(is_cut(&first).await);
    let other = admit(&connections, "2001:db8:0:1::1").await.unwrap();
    let _mapped = admit(&connections, "::ffff:10.0.0.1").await.unwrap();
    assert!(!is_cut(&other).await);
}

#[tokio::test(start_paused = true)]
async fn books_are_empty_when_all_connections_are_closed() {
    let connections = connections(3, 2);
    let permits = [
        admit(&connections, A).await,
        admit(&connections, A).await,
        admit(&connections, A).await,
        admit(&connections, B).await,
        connections.admit(C.parse().unwrap(), true).await,
    ];
    drop(permits);
    let books = connections.lock();
    assert_eq!((books.sockets, books.total), (0, 0));
    assert!(books.holders.is_empty() && books.by_count.is_empty());
}

#[tokio::test(start_paused = true)]
async fn closing_sockets_delay_new_ones() {
    let connections = connections(1, 1);
    let mut closing = Vec::new();
    for _ in 0..=CLOSING_MAX {
        connections.socket_free().await;
        closing.push(admit(&connections, A).await.unwrap());
    }
    assert!(tokio::time::timeout(RETRY, connections.socket_free()).await.is_err());
    closing.pop();
    connections.socket_free().await;
}
