//! WebSocket connections among the streams of a key. They have slots like streams. They also end when the account's
//! balance is used up, because an open connection can carry any amount of work.

use std::sync::Arc;

use metering_core::access::KeyHash;
use metering_core::{Credits, Error, Store};
use tokio_util::sync::CancellationToken;

use super::{StreamPermit, Streams};

/// The slot of a WebSocket connection, released when its last clone is dropped.
#[derive(Debug, Clone)]
pub(crate) struct SocketSlot {
    streams: Arc<Streams>,
    /// `None` without a key: the route is free, or the request was paid without one.
    permit: Option<Arc<StreamPermit>>,
}

/// Why the server ends a WebSocket connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketEnd {
    ShuttingDown,
    KeyEnded,
    BalanceUsedUp,
}

impl Streams {
    /// Reserves a slot for one more WebSocket connection.
    ///
    /// # Errors
    /// [`Error::TooManyStreams`] when the key has its maximum of open streams.
    pub(crate) fn reserve_socket(self: &Arc<Self>, key: Option<KeyHash>) -> Result<SocketSlot, Error> {
        let permit = key.map(|key| self.reserve(key)).transpose()?.map(Arc::new);
        Ok(SocketSlot { streams: Arc::clone(self), permit })
    }

    /// Ends the WebSocket connections of keys whose account has used up its balance since they were opened.
    pub(super) async fn end_unpaid_sockets(&self, store: &dyn Store) {
        let paid: Vec<KeyHash> =
            self.lock().iter().filter(|(_, streams)| streams.paid_sockets.is_some()).map(|(key, _)| *key).collect();
        for key in paid {
            match store.account_by_key(&key).await {
                Ok(Some(account)) => self.end_sockets_without(account.totals.unspent(), &key),
                Ok(None) => {}
                Err(error) => {
                    return tracing::warn!(%error, "could not check the balances behind WebSocket connections");
                }
            }
        }
    }

    fn end_sockets_without(&self, unspent: Credits, key: &KeyHash) {
        let mut open = self.lock();
        let Some(streams) = open.get_mut(key) else { return };
        if streams.paid_sockets.is_some_and(|paid| is_used_up(unspent, paid)) {
            streams.paid_sockets = None;
            // Those that are opened later, after a top-up, do not end with these.
            let later = streams.end.child_token();
            std::mem::replace(&mut streams.sockets_end, later).cancel();
        }
    }
}

/// Whether the balance was used up by anything but the connections themselves. A connection that took the last credits
/// was paid for, and stays open.
fn is_used_up(unspent: Credits, after_last_connection: Credits) -> bool {
    !unspent.is_positive() && unspent < after_last_connection
}

impl SocketSlot {
    /// Records that the connection is open, and what its charge left of the balance.
    pub(crate) fn opened(&self, balance: Option<Credits>) {
        if let (Some(permit), Some(balance)) = (&self.permit, balance)
            && let Some(streams) = self.streams.lock().get_mut(&permit.key)
        {
            streams.paid_sockets = Some(balance);
        }
    }

    /// Resolves when the server must end the connection.
    pub(crate) async fn ended(&self) -> SocketEnd {
        let end: &CancellationToken = match &self.permit {
            Some(permit) => &permit.sockets_end,
            None => &self.streams.stopping,
        };
        end.cancelled().await;
        let is_key_dead = self.permit.as_ref().is_some_and(|permit| permit.end.is_cancelled());
        match self.streams.stopping.is_cancelled() {
            true => SocketEnd::ShuttingDown,
            false if is_key_dead => SocketEnd::KeyEnded,
            false => SocketEnd::BalanceUsedUp,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_connection_that_took_the_last_credits_stays_open() {
        let credits = |text: &str| text.parse::<Credits>().unwrap();
        // what is left now, what the last connection left, is used up
        let table = [
            ("0.01", "0.01", false),
            ("0.001", "0.01", false),
            ("0", "0.01", true),
            ("-0.5", "0.01", true),
            ("0", "0", false),
            ("-0.5", "-0.5", false),
            ("-0.6", "-0.5", true),
        ];
        for (unspent, paid, expected) in table {
            assert_eq!(is_used_up(credits(unspent), credits(paid)), expected, "{unspent} after {paid}");
        }
    }

    #[test]
    fn connections_opened_after_a_top_up_do_not_end_with_those_before() {
        let (streams, key) = (Arc::new(Streams::new(3)), KeyHash::from_bytes([1; 32]));
        let (stream, first) = (streams.reserve(key).unwrap(), streams.reserve_socket(Some(key)).unwrap());
        first.opened(Some("1".parse().unwrap()));
        streams.end_sockets_without(Credits::ZERO, &key);
        let second = streams.reserve_socket(Some(key)).unwrap();
        assert_eq!(first.ended().now_or_never(), Some(SocketEnd::BalanceUsedUp));
        assert_eq!(second.ended().now_or_never(), None);
        assert!(!stream.end.is_cancelled(), "a stream is not ended by the balance");
        assert!(streams.end(&key));
        assert_eq!(second.ended().now_or_never(), Some(SocketEnd::KeyEnded));
        streams.stopping.cancel();
        let free = streams.reserve_socket(None).unwrap();
        assert_eq!(free.ended().now_or_never(), Some(SocketEnd::ShuttingDown));
    }
}
