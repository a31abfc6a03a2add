//! Whether clients reach the service under its public URL.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use metering_client::{HttpTransport, Transport};
use metering_config::server::Config;

use super::findings::Findings;

const CHECK: &str = "public_url";
const WAIT: Duration = Duration::from_secs(10);

pub(super) async fn check(config: &Config, findings: &mut Findings) {
    let Some(url) = &config.public_url else {
        return findings.ok(CHECK, format_args!("not set: links begin with {}://{}", config.scheme(), config.listen));
    };
    match health(url).await {
        Ok(200) => findings.ok(CHECK, format_args!("{url}/health answers")),
        Ok(status) => findings.warning(CHECK, format_args!("{url}/health answers with {status}"), UNREACHABLE),
        Err(problem) => {
            let advice = advice_on(&problem);
            findings.warning(CHECK, problem, advice);
        }
    }
}

const UNREACHABLE: &str = "start the server, then check the name, the firewall, and what the proxy forwards; from this \
                           machine it may also be unreachable although clients reach it";

/// The transport reports rustls's certificate errors as text: "invalid peer certificate: UnknownIssuer".
fn advice_on(problem: &str) -> &'static str {
    if problem.contains("certificate") {
        return "clients refuse this certificate too, unless they trust its issuer: get one from a public authority for \
                the host of public_url, and send its whole chain (docs/deployment.md)";
    }
    UNREACHABLE
}

async fn health(url: &str) -> Result<u16, String> {
    let service = url.parse().map_err(|error: metering_client::ServiceUrlError| error.to_string())?;
    let transport = HttpTransport::new(service, WAIT).map_err(|error| error.to_string())?;
    let request = Request::get("/health").body(Bytes::new()).map_err(|error| error.to_string())?;
    let response = tokio::time::timeout(WAIT, transport.send(request)).await;
    let response = response.map_err(|_| format!("no response from {url} within {} s", WAIT.as_secs()))?;
    Ok(response.map_err(|error| error.to_string())?.status().as_u16())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_is_not_trusted_is_no_server_to_start() {
        let refused = "https://example.com: invalid peer certificate: UnknownIssuer";
        assert!(!advice_on(refused).contains("start the server"));
        assert!(advice_on("https://example.com: connection refused").contains("start the server"));
    }
}
