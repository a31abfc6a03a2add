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
    let advice = "start the server, then check the name, the firewall, and what the proxy forwards; from this machine it \
                  may also be unreachable although clients reach it";
    match health(url).await {
        Ok(200) => findings.ok(CHECK, format_args!("{url}/health answers")),
        Ok(status) => findings.warning(CHECK, format_args!("{url}/health answers with {status}"), advice),
        Err(problem) => findings.warning(CHECK, problem, advice),
    }
}

async fn health(url: &str) -> Result<u16, String> {
    let service = url.parse().map_err(|error: metering_client::ServiceUrlError| error.to_string())?;
    let transport = HttpTransport::new(service, WAIT).map_err(|error| error.to_string())?;
    let request = Request::get("/health").body(Bytes::new()).map_err(|error| error.to_string())?;
    let response = tokio::time::timeout(WAIT, transport.send(request)).await;
    let response = response.map_err(|_| format!("no response from {url} within {} s", WAIT.as_secs()))?;
    Ok(response.map_err(|error| error.to_string())?.status().as_u16())
}
