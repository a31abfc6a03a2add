//! Requests the path of an upstream's health from time to time, on the runtime of background tasks, for as long as the
//! upstream is in use.

use std::sync::{Arc, Weak};
use std::time::Duration;

use http::uri::PathAndQuery;
use tokio::time::{MissedTickBehavior, interval};

use super::named_upstream::NamedUpstream;
use crate::config::ConfigError;

/// How long a check may take, if the interval is not shorter.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Starts the checks, if the upstream has a path for them.
///
/// # Errors
/// When it is not a path.
pub(super) fn start(upstream: &Arc<NamedUpstream>) -> Result<(), ConfigError> {
    let config = &upstream.config;
    let Some(path) = &config.health else { return Ok(()) };
    let path = path.parse::<PathAndQuery>();
    let path = path.map_err(|error| ConfigError::key(format!("gateway.upstreams.{}.health", config.name), error))?;
    tokio::spawn(run(Arc::downgrade(upstream), path, config.health_interval.duration()));
    Ok(())
}

async fn run(upstream: Weak<NamedUpstream>, path: PathAndQuery, every: Duration) {
    let mut interval = interval(every);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let Some(upstream) = upstream.upgrade() else { return };
        upstream.check(&path, every.min(TIMEOUT)).await;
    }
}
