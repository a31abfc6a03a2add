//! The origins of logs: the names that identify them in checkpoints and keys, and to readers.

use url::{Position, Url};

/// The origin of an epoch: the URL that the service serves it at, without the scheme. `None` if `public_url` is not a
/// URL, or cannot be the origin of a signed note.
///
/// ```
/// # use metering_core::store::log_origin;
/// assert_eq!(log_origin("https://example.com/api/", 1).as_deref(), Some("example.com/api/log/1"));
/// assert_eq!(log_origin("http://LOCALHOST:8787", 2).as_deref(), Some("localhost:8787/log/2"));
/// assert_eq!(log_origin("https://example.com/a+b", 1), None);
/// ```
#[must_use]
pub fn log_origin(public_url: &str, epoch: u32) -> Option<String> {
    let url = Url::parse(public_url).ok().filter(Url::has_host)?;
    let place = url[Position::BeforeHost..Position::AfterPath].trim_end_matches('/');
    let unfit = |c: char| c.is_whitespace() || c.is_control() || c == '+';
    (!place.contains(unfit)).then(|| format!("{place}/log/{epoch}"))
}

/// The number of the epoch that an origin names. `None` for the origin of another kind of log.
///
/// ```
/// # use metering_core::store::origin_epoch;
/// assert_eq!(origin_epoch("example.com/api/log/12"), Some(12));
/// assert_eq!(origin_epoch("example.com/log"), None);
/// ```
#[must_use]
pub fn origin_epoch(origin: &str) -> Option<u32> {
    origin.rsplit_once('/')?.1.parse().ok()
}
