//! [`InFlightSlot`]: counts a request as in flight until its response has been sent.

use std::sync::Arc;

use http::Response;

use crate::charging::in_flight::Slot;

/// Counts a request as in flight, for a key with a limit on that.
///
/// [`MeteringLayer`](crate::MeteringLayer) puts it into the extensions of the response. If the response has a body that
/// takes time, such as a stream, keep it with the body until that has ended. Otherwise the request ends with its head.
#[derive(Debug, Clone)]
pub struct InFlightSlot {
    _slot: Arc<Slot>,
}

impl InFlightSlot {
    /// Puts the slot of a request, if it has one, into its response.
    pub(super) fn pass<R>(slot: Option<Slot>, response: &mut Response<R>) {
        if let Some(slot) = slot {
            response.extensions_mut().insert(Self { _slot: Arc::new(slot) });
        }
    }
}
