//! The message channels of a session, as the transport that rmcp expects.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::backlog::Backlog;

/// A client that reads nothing for this long while messages wait loses its session, because they take up memory.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Incoming messages of the client, and outgoing messages of the server.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) received: mpsc::Receiver<ClientJsonRpcMessage>,
    pub(crate) outbox: mpsc::Sender<ServerJsonRpcMessage>,
    pub(crate) backlog: Arc<Backlog>,
    /// Ends the session.
    pub(crate) end: CancellationToken,
}

impl Transport<RoleServer> for Channel {
    type Error = Infallible;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        // Count it now and not when the future is polled: rmcp has many of these in flight, and all count.
        self.backlog.queued(&message);
        let (outbox, backlog, end) = (self.outbox.clone(), Arc::clone(&self.backlog), self.end.clone());
        async move {
            deliver(&outbox, message, &backlog, &end).await;
            // A client that has gone is not an error, and rmcp would log it as one.
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.received.recv().await
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.received.close();
        Ok(())
    }
}

/// Waits until there is room for the message, or the session ends.
async fn deliver(
    outbox: &mpsc::Sender<ServerJsonRpcMessage>,
    message: ServerJsonRpcMessage,
    backlog: &Backlog,
    end: &CancellationToken,
) {
    loop {
        tokio::select! {
            permit = outbox.reserve() => {
                if let Ok(permit) = permit {
                    permit.send(message);
                }
                return;
            }
            () = end.cancelled() => return,
            () = tokio::time::sleep(STALL_TIMEOUT) => {
                if backlog.unread_for() >= STALL_TIMEOUT {
                    tracing::info!("ended an MCP session: its client does not read");
                    end.cancel();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(end: &CancellationToken) -> (Channel, mpsc::Receiver<ServerJsonRpcMessage>) {
        let (_, received) = mpsc::channel(1);
        let (outbox, messages) = mpsc::channel(1);
        (Channel { received, outbox, backlog: Arc::new(Backlog::new()), end: end.clone() }, messages)
    }

    fn response(id: i64) -> ServerJsonRpcMessage {
        serde_json::from_value(serde_json::json!({"jsonrpc": "2.0", "id": id, "result": {}})).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn silent_reader_loses_its_session_and_slow_reader_keeps_it() {
        let end = CancellationToken::new();
        let (mut channel, mut messages) = channel(&end);
        let sends: Vec<_> = (1..=4).map(|id| tokio::spawn(channel.send(response(id)))).collect();
        for _ in 0..2 {
            tokio::time::sleep(STALL_TIMEOUT - Duration::from_secs(1)).await;
            assert!(messages.recv().await.is_some());
            channel.backlog.read();
        }
        assert!(!end.is_cancelled(), "the client reads");
        tokio::time::sleep(2 * STALL_TIMEOUT).await;
        assert!(end.is_cancelled(), "the client has stopped reading");
        for send in sends {
            assert!(send.await.is_ok(), "no send is left waiting");
        }
    }

    #[tokio::test]
    async fn disconnected_client_is_not_an_error() {
        let (mut channel, messages) = channel(&CancellationToken::new());
        drop(messages);
        assert_eq!(channel.send(response(1)).await, Ok(()));
    }
}
