//! The memory that bodies take which are kept: of requests until they are forwarded, and of responses until they are
//! sent.
//!
//! There is one budget for the process, and a share of it for each client address. Kept bytes have a permit, which
//! returns to the budget when the bytes are dropped. Requests may use all of it. Responses are kept only to improve
//! them, and can be passed on instead, so they may use half.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::Extensions;

use crate::access::limits::Network;
use crate::http::client_address::ClientAddress;

/// The smallest buffer, in bytes.
const BUFFER_MIN: usize = 1 << 10;

/// The budget of a process.
#[derive(Debug, Clone)]
pub(crate) struct BodyBudget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    most: usize,
    most_per_client: usize,
    taken: Mutex<Taken>,
}

/// How many bytes are kept.
#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_client: HashMap<Network, usize>,
}

/// The budget as one client may use it.
#[derive(Debug, Clone)]
pub(crate) struct BodyShare {
    shared: Arc<Shared>,
    /// `None` for a request from within the process, or of a trusted proxy itself.
    client: Option<Network>,
}

/// What is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// A request, which cannot be served otherwise.
    Request,
    /// A response.
    Response,
}

/// Why no more can be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// The server's budget is used up.
    Server,
    /// The share of this client's address is used up.
    Client,
}

impl BodyBudget {
    /// A budget of `most` bytes; the bodies of one client address (a /64 of IPv6) may take `most_per_client` of them.
    #[must_use]
    pub(crate) fn new(most: usize, most_per_client: usize) -> Self {
        Self(Arc::new(Shared { most, most_per_client, taken: Mutex::default() }))
    }

    /// The share of the client that sent a request with these extensions.
    #[must_use]
    pub(crate) fn share(&self, request: &Extensions) -> BodyShare {
        let client = request.get::<ClientAddress>().filter(|client| !client.is_proxy());
        BodyShare { shared: Arc::clone(&self.0), client: client.map(|client| Network::of(client.ip())) }
    }

    /// How many bytes are kept now.
    #[must_use]
    pub(crate) fn taken(&self) -> usize {
        self.0.taken().all
    }
}

impl BodyShare {
    /// An empty buffer, which takes nothing from the budget.
    #[must_use]
    pub(crate) fn buffer(&self, kept: Kept) -> BodyBuffer {
        BodyBuffer { bytes: Vec::new(), permit: Permit { share: self.clone(), kept, size: 0 } }
    }

    /// Keeps a copy of a piece of a response. The piece itself may be a part of a much larger allocation.
    ///
    /// # Errors
    /// When the budget is exhausted.
    pub(crate) fn keep(&self, piece: &[u8]) -> Result<Bytes, Exhausted> {
        let mut buffer = self.buffer(Kept::Response);
        buffer.push(piece, piece.len())?;
        Ok(buffer.into_bytes())
    }
}

/// A body that is being received.
pub(crate) struct BodyBuffer {
    bytes: Vec<u8>,
    permit: Permit,
}

impl fmt::Debug for BodyBuffer {
    /// The length only: bodies can contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BodyBuffer({} bytes)", self.bytes.len())
    }
}

impl BodyBuffer {
    /// Adds bytes to a body that will have at most `most` bytes, as far as the caller knows.
    ///
    /// # Errors
    /// When the budget is exhausted. Nothing was added.
    pub(crate) fn push(&mut self, data: &[u8], most: usize) -> Result<(), Exhausted> {
        let length = self.bytes.len() + data.len();
        if length > self.bytes.capacity() {
            let room = length.max(2 * self.bytes.capacity()).max(BUFFER_MIN).min(most.max(length));
            self.reserve(room)?;
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    /// Makes room for a body of this length, so that it is not moved as it grows.
    ///
    /// # Errors
    /// When the budget is exhausted.
    pub(crate) fn reserve(&mut self, length: usize) -> Result<(), Exhausted> {
        if length > self.bytes.capacity() {
            self.permit.grow(length)?;
            self.bytes.reserve_exact(length - self.bytes.len());
        }
        Ok(())
    }

    /// How many bytes it has.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Drops its bytes and returns them to the budget.
    pub(crate) fn clear(&mut self) {
        self.bytes = Vec::new();
        self.permit.release();
    }

    /// The bytes. Their permit is released with the last clone of them.
    #[must_use]
    pub(crate) fn into_bytes(self) -> Bytes {
        if self.bytes.is_empty() { Bytes::new() } else { Bytes::from_owner(self) }
    }
}

impl AsRef<[u8]> for BodyBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The right to keep some bytes, given back on drop.
#[derive(Debug)]
struct Permit {
    share: BodyShare,
    kept: Kept,
    size: usize,
}

impl Permit {
    /// Grows to `size` bytes.
    fn grow(&mut self, size: usize) -> Result<(), Exhausted> {
        let BodyShare { shared, client } = &self.share;
        let added = size.saturating_sub(self.size);
        let of = |most: usize| if self.kept == Kept::Response { most / 2 } else { most };
        let mut taken = shared.taken();
        if taken.all.saturating_add(added) > of(shared.most) {
            return Err(Exhausted::Server);
        }
        if let Some(client) = client {
            let own = taken.by_client.entry(*client).or_default();
            if own.saturating_add(added) > of(shared.most_per_client) {
                if *own == 0 {
                    taken.by_client.remove(client);
                }
                return Err(Exhausted::Client);
            }
            *own += added;
        }
        taken.all += added;
        self.size += added;
        Ok(())
    }

    fn release(&mut self) {
        let size = std::mem::take(&mut self.size);
        if size == 0 {
            return;
        }
        let mut taken = self.share.shared.taken();
        taken.all -= size;
        if let Some(client) = self.share.client
            && let Entry::Occupied(mut own) = taken.by_client.entry(client)
        {
            *own.get_mut() -= size;
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.release();
    }
}

impl Shared {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::config::TrustedProxies;

    /// The share of a client that connects from this address.
    fn share(budget: &BodyBudget, address: &str) -> BodyShare {
        let mut extensions = Extensions::new();
        let proxies: TrustedProxies = ["127.0.0.9".parse().unwrap()].into_iter().collect();
        extensions.insert(ClientAddress::find(address.parse().unwrap(), &HeaderMap::new(), &proxies));
        budget.share(&extensions)
    }

    #[test]
    fn bytes_count_until_the_last_of_them_is_dropped() {
        let budget = BodyBudget::new(100_000, 100_000);
        let mut buffer = share(&budget, "192.0.2.1").buffer(Kept::Request);
        assert_eq!(budget.taken(), 0);
        for _ in 0..5 {
            buffer.push(&[b'x'; 1_000], 5_000).unwrap();
        }
        assert_eq!(budget.taken(), 5_000, "no more than the body will have");
        let bytes = buffer.into_bytes();
        let part = bytes.slice(1..2);
        drop(bytes);
        assert_eq!(budget.taken(), 5_000, "a part keeps all of it");
        drop(part);
        assert_eq!(budget.taken(), 0);
        let mut buffer = share(&budget, "192.0.2.1").buffer(Kept::Request);
        buffer.push(&[b'x'; 3_000], 3_000).unwrap();
        buffer.clear();
        assert_eq!((budget.taken(), buffer.into_bytes().len()), (0, 0));
        let mut buffer = share(&budget, "192.0.2.1").buffer(Kept::Response);
        assert_eq!(buffer.reserve(60_000), Err(Exhausted::Server), "half of the budget is for requests");
        buffer.reserve(40_000).unwrap();
        buffer.push(&[b'x'; 1_000], 40_000).unwrap();
        assert_eq!((budget.taken(), buffer.len()), (40_000, 1_000));
    }

    #[test]
    fn each_client_has_a_share_and_responses_leave_room_for_requests() {
        let budget = BodyBudget::new(12_000, 4_000);
        let kept = |share: &BodyShare, kept, size: usize| {
            let mut buffer = share.buffer(kept);
            buffer.push(&vec![b'x'; size], size).map(|()| buffer.into_bytes())
        };
        let (one, neighbour) = (share(&budget, "2001:db8:1:2::1"), share(&budget, "2001:db8:1:2:ffff::7"));
        let first = kept(&one, Kept::Request, 3_000).unwrap();
        assert_eq!(kept(&neighbour, Kept::Request, 1_001), Err(Exhausted::Client), "of the same /64");
        assert_eq!(kept(&one, Kept::Response, 100), Err(Exhausted::Client), "half of it is taken");
        let other = share(&budget, "2001:db8:1:3::1");
        let second = kept(&other, Kept::Response, 2_000).unwrap();
        assert_eq!(other.keep(b"y"), Err(Exhausted::Client));
        let proxy = share(&budget, "127.0.0.9");
        assert_eq!(kept(&proxy, Kept::Response, 1_001), Err(Exhausted::Server), "half of it is taken");
        let third = kept(&proxy, Kept::Request, 7_000).unwrap();
        assert_eq!(kept(&proxy, Kept::Request, 1), Err(Exhausted::Server));
        drop((first, second, third));
        assert_eq!(budget.taken(), 0);
        assert!(budget.0.taken().by_client.is_empty());
        assert!(kept(&proxy, Kept::Request, 12_000).is_ok(), "it recovers");
    }
}
