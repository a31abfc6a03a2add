//! Warns at startup about upstream problems that would otherwise only show up in the first failed request.

use std::time::Duration;

use tokio::net::TcpStream;
use url::Url;

use crate::config::Config;

/// Warns when nothing listens at a configured upstream, or when its documents share the origin of the pages.
///
/// Only opens and closes a connection, because a request might have side effects. The server starts anyway, since the
/// upstream may come up later.
pub(crate) async fn warn_about_upstream(config: Config) {
    let named = config.gateway.upstreams.iter().map(|upstream| &upstream.url);
    let upstreams: Vec<_> = config.upstream.iter().chain(named).collect();
    if upstreams.is_empty() {
        return;
    }
    if config.gateway.content_security_policy.trim().is_empty() && config.pages_url.is_none() {
        tracing::warn!(
            "gateway.content_security_policy is empty and pages_url is not set: if this service serves its pages, \
             upstream documents can read the API keys that its visitors enter"
        );
    }
    let timeout = config.gateway.connect_timeout.duration();
    for upstream in upstreams {
        if let Err(problem) = connect(upstream, timeout).await {
            tracing::warn!(
                upstream,
                problem,
                "the upstream cannot be reached; until it can, metered requests that need it get 502 and are refunded"
            );
        }
    }
}

async fn connect(upstream: &str, timeout: Duration) -> Result<(), String> {
    let url = Url::parse(upstream).map_err(|error| error.to_string())?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let port = url.port_or_known_default().unwrap_or(80);
    match tokio::time::timeout(timeout, TcpStream::connect((host, port))).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no connection within {} ms", timeout.as_millis())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn listening_upstream_is_distinguished_from_a_closed_one() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/base", listener.local_addr().unwrap());
        assert_eq!(connect(&url, Duration::from_secs(5)).await, Ok(()));
        drop(listener);
        assert!(connect(&url, Duration::from_secs(5)).await.unwrap_err().contains("refused"));
    }
}
