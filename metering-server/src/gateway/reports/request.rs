//! A request whose credits are held while it is served.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use metering_core::UnderWay;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::rest::Bounds;
use super::settling::Settling;
use crate::gateway::streams::StreamRoute;
use crate::http::{Problem, Response};

/// What the task that serves a request knows about it.
pub(super) struct HeldRequest {
    pub(super) settling: Settling,
    pub(super) wants_trailers: bool,
    /// Cancelled when the server cannot wait any longer.
    pub(super) stop: CancellationToken,
    pub(super) bounds: Bounds,
    /// How long the upstream may send nothing of a body that is read before it is passed on.
    pub(super) silence: Duration,
    /// Held until the task ends: the upstream may still be at work when the client has gone.
    pub(super) _stream: Option<StreamRoute>,
}

/// To the client, if it is still there.
pub(super) type Reply = oneshot::Sender<Result<Response, Problem>>;

/// Brings the slot of a request under way from its response to its task, which holds it while it reads.
#[derive(Debug, Clone, Default)]
pub(in crate::gateway) struct HeldSlot(Arc<Mutex<Option<UnderWay>>>);

impl HeldSlot {
    /// Hands over the slot.
    pub(in crate::gateway) fn put(&self, slot: UnderWay) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(slot);
    }
}

impl HeldRequest {
    /// Releases the hold of a request that was not served.
    pub(super) async fn refuse(&self, problem: Problem, reply: Reply) {
        // The layer tells the client if that failed.
        drop(self.settling.charged.refund().await);
        let _ = reply.send(Err(problem));
    }
}
