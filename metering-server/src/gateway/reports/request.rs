//! A request whose credits are held while it is served.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::hidden::Hides;
use super::rest::{Bounds, Place, Unattended};
use super::settling::Settling;
use crate::http::{BodyShare, Problem, Response};

/// The state of the task that serves a request.
pub(super) struct HeldRequest {
    pub(super) settling: Settling,
    pub(super) wants_trailers: bool,
    /// Events that its client does not get.
    pub(super) hides: Option<Hides>,
    /// Cancelled when the server cannot wait any longer.
    pub(super) stop: CancellationToken,
    pub(super) bounds: Bounds,
    /// How long the upstream may pause within a body that is read before it is forwarded.
    pub(super) silence: Duration,
    /// The part of the memory budget that the response may use.
    pub(super) share: BodyShare,
    pub(super) unattended: Arc<Unattended>,
    /// Taken when the client disconnects.
    pub(super) place: Option<Place>,
}

/// To the client, if it is still there.
pub(super) type Reply = oneshot::Sender<Result<Response, Problem>>;

impl HeldRequest {
    /// Releases the hold of a request that was not served.
    pub(super) async fn refuse(&self, problem: Problem, reply: Reply) {
        // The layer tells the client if that failed.
        drop(self.settling.charged.refund().await);
        let _ = reply.send(Err(problem));
    }

    /// The client has gone. Returns whether the rest of the response is read.
    pub(super) async fn client_has_gone(&mut self) -> bool {
        if self.place.is_none() {
            self.settling.charged.end_in_flight().await;
            self.place = self.unattended.enter(&self.settling.charged.account);
        }
        self.place.is_some()
    }
}
