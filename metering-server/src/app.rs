//! What the handlers share.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use metering_core::{Meter, Service, Store};
use metrics_exporter_prometheus::PrometheusHandle;
use sha3::{Digest, Sha3_256};
use subtle::ConstantTimeEq;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::config::Secret;
use crate::gateway::Gateway;

/// How long the answer to "can the store be written to" holds: each finding out is a write to disk, and anybody may
/// ask.
const READINESS_FRESH: Duration = Duration::from_secs(1);

/// The parts of a running server.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) service: Arc<Service>,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) billing_secret: Option<BillingSecret>,
    pub(crate) metrics: PrometheusHandle,
    /// Whether `/metrics` is served beside the API.
    pub(crate) metrics_here: bool,
    pub(crate) openapi: Bytes,
    pub(crate) readiness: Readiness,
}

/// What other services prove themselves with, kept as a hash so that comparing takes the same time whatever is sent.
#[derive(Clone)]
pub(crate) struct BillingSecret([u8; 32]);

impl BillingSecret {
    pub(crate) fn new(secret: &Secret) -> Self {
        Self(Sha3_256::digest(secret.expose().as_bytes()).into())
    }

    /// Whether `sent` is the secret, in constant time.
    pub(crate) fn admits(&self, sent: &[u8]) -> bool {
        let sent: [u8; 32] = Sha3_256::digest(sent).into();
        self.0.ct_eq(&sent).into()
    }
}

impl std::fmt::Debug for BillingSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BillingSecret(********)")
    }
}

/// Whether the store could be written to a moment ago.
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    last: Mutex<Option<(Instant, bool)>>,
}

impl Readiness {
    /// Finds out, unless it just did.
    pub(crate) async fn of(&self, store: &dyn Store) -> bool {
        let mut last = self.last.lock().await;
        if let Some((at, ready)) = *last
            && at.elapsed() < READINESS_FRESH
        {
            return ready;
        }
        let checked = store.check().await;
        if let Err(error) = &checked {
            tracing::error!(%error, "the store cannot be written to");
        }
        *last = Some((Instant::now(), checked.is_ok()));
        checked.is_ok()
    }
}
