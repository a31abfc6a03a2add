//! Notifies the service manager that started this process (`Type=notify` of systemd; see `sd_notify(3)`): when it is
//! ready, reloads and stops, and that it is not stuck. Without `NOTIFY_SOCKET`, nothing is sent.
//!
//! A database or a chain that is down must not make the service manager restart the server in a loop. So the watchdog
//! is notified whenever the store check ends, with any result: only a process that hangs is killed.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep, timeout};

use crate::http::Shutdown;

/// `READY=1` waits this long for `/ready` to succeed. The server accepts requests already, and its dependencies may be
/// down for hours, during which `systemctl start` would not return.
const READY_WAIT: Duration = Duration::from_secs(10);
/// How often readiness is checked until then.
const READY_POLL: Duration = Duration::from_millis(100);

/// A check that is run again and again.
pub(crate) type Check<T> = Box<dyn Fn() -> BoxFuture<'static, T> + Send + Sync>;

/// The notifications to the service manager depend on these.
pub(crate) struct Checks {
    /// Why the server is not ready, if it is not.
    pub(crate) not_ready: Check<Option<String>>,
    /// Ends within seconds, unless the process is stuck.
    pub(crate) responds: Check<()>,
}

/// Notifies readiness, and then the watchdog, until shutdown. Call it once the server accepts requests.
pub(crate) async fn supervise(checks: Checks, shutdown: Shutdown) {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return;
    }
    let supervised = async {
        notify_ready(&checks.not_ready).await;
        if let Some(limit) = system::watchdog() {
            notify_watchdog(&checks.responds, limit).await;
        }
    };
    tokio::select! {
        () = supervised => {}
        () = shutdown.cancelled() => {}
    }
}

async fn notify_ready(not_ready: &Check<Option<String>>) {
    let started = Instant::now();
    loop {
        let left = READY_WAIT.saturating_sub(started.elapsed());
        let reason = match timeout(left, not_ready()).await {
            Ok(None) => return system::ready("Serving requests"),
            Ok(Some(reason)) => reason,
            Err(_) => "the readiness check takes long".to_owned(),
        };
        if started.elapsed() >= READY_WAIT {
            tracing::warn!(reason, "the server accepts requests, but is not ready");
            return system::ready(&format!("Started, but not ready: {reason}"));
        }
        system::status(&format!("Not ready: {reason}"));
        sleep(READY_POLL).await;
    }
}

/// The service manager kills this process if it gets no notification for `limit`. A check begins after each third of
/// that, and may take as long, so that at most two thirds pass.
async fn notify_watchdog(responds: &Check<()>, limit: Duration) {
    let third = limit / 3;
    loop {
        match timeout(third, responds()).await {
            Ok(()) => system::alive(),
            Err(_) => tracing::error!("the server's self-check did not finish; the watchdog is not notified"),
        }
        sleep(third).await;
    }
}

/// The configuration is being read again.
pub(crate) fn reloading() {
    system::reloading();
}

/// The reload has ended. `problem` is the reason why nothing has changed.
pub(crate) fn reloaded(problem: Option<&str>) {
    match problem {
        None => system::ready("Serving requests"),
        Some(problem) => system::ready(&format!("Serving requests; the last reload failed: {problem}")),
    }
}

/// The server is shutting down.
pub(crate) fn stopping() {
    system::stopping();
}

#[cfg(unix)]
mod system {
    use std::time::Duration;

    use sd_notify::NotifyState::{self, MonotonicUsec, Ready, Reloading, Status, Stopping, Watchdog};

    /// How long the service manager waits for a sign of life, if it does.
    pub(super) fn watchdog() -> Option<Duration> {
        sd_notify::watchdog_enabled()
    }

    pub(super) fn ready(status: &str) {
        send(&[Ready, Status(&one_line(status))]);
    }

    pub(super) fn status(status: &str) {
        send(&[Status(&one_line(status))]);
    }

    pub(super) fn alive() {
        send(&[Watchdog]);
    }

    pub(super) fn reloading() {
        // `Type=notify-reload` needs the time.
        let now = NotifyState::monotonic_usec_now().unwrap_or(MonotonicUsec(0));
        send(&[Reloading, now]);
    }

    pub(super) fn stopping() {
        send(&[Stopping, Status("Finishing accepted requests")]);
    }

    fn send(state: &[NotifyState<'_>]) {
        if let Err(error) = sd_notify::notify(state) {
            tracing::warn!(%error, "cannot notify the service manager");
        }
    }

    /// A second line would be read as another notification.
    fn one_line(text: &str) -> String {
        text.split(['\n', '\r']).map(str::trim).collect::<Vec<_>>().join(" ")
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn status_stays_on_its_line() {
            assert_eq!(one_line("line 3:\nWATCHDOG=trigger\r\n"), "line 3: WATCHDOG=trigger  ");
        }
    }
}

/// Other systems have no such protocol.
#[cfg(not(unix))]
mod system {
    pub(super) fn watchdog() -> Option<std::time::Duration> {
        None
    }

    pub(super) fn ready(_status: &str) {}

    pub(super) fn status(_status: &str) {}

    pub(super) fn alive() {}

    pub(super) fn reloading() {}

    pub(super) fn stopping() {}
}
