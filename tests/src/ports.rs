//! Addresses for programs that cannot choose one themselves.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Below the ports that the system gives to outgoing connections and to listeners on port 0 (on Linux from 32768), so
/// that none of those takes one before the program has it.
const PORTS: Range<u16> = 20_000..32_768;

/// A loopback address on which nothing listens, a new one in each call. Processes begin at random.
#[must_use]
pub fn free_address() -> SocketAddr {
    static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| AtomicU64::new(RandomState::new().hash_one(()) >> 1));
    let count = u64::from(PORTS.end - PORTS.start);
    let next = || PORTS.start + u16::try_from(NEXT.fetch_add(1, Ordering::Relaxed) % count).expect("below the count");
    let mut addresses = (0..count).map(|_| SocketAddr::from((Ipv4Addr::LOCALHOST, next())));
    addresses.find(|address| TcpListener::bind(address).is_ok()).expect("the machine has a free port")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_address_is_another_and_free() {
        let taken = TcpListener::bind(free_address()).unwrap();
        let drawn: BTreeSet<_> = (0..100).map(|_| free_address()).collect();
        assert_eq!(drawn.len(), 100);
        assert!(!drawn.contains(&taken.local_addr().unwrap()));
        assert!(drawn.iter().all(|address| PORTS.contains(&address.port())));
    }
}
