//! Whether `X-Forwarded-For` is trusted from the right machines: all limits by address depend on it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use metering_config::server::Config;

use super::findings::Findings;

const CHECK: &str = "proxies";

/// Documentation addresses (RFC 5737, RFC 3849): a configuration that trusts them trusts everyone.
const NOBODY: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

pub(super) fn check(config: &Config, findings: &mut Findings) {
    let trusted = &config.http.trusted_proxies;
    if NOBODY.iter().any(|address| trusted.contains(*address)) {
        let advice = "list only the addresses of your proxies in http.trusted_proxies";
        return findings.problem(CHECK, "every client is trusted to say which address it has", advice);
    }
    let is_behind_proxy =
        config.tls.is_none() && config.public_url.as_deref().is_some_and(|url| url.starts_with("https:"));
    if is_behind_proxy && trusted.is_empty() {
        let found = "public_url is https and this server's address is not, so a proxy is in front, but none is trusted";
        let advice = "list the proxy in http.trusted_proxies, and have it set X-Forwarded-For: otherwise all clients \
                      share the proxy's address and its limits";
        return findings.warning(CHECK, found, advice);
    }
    let is_local = config.listen.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback());
    if is_behind_proxy && !is_local {
        let found =
            format!("{} can be reached without the proxy, and without TLS, if no firewall forbids it", config.listen);
        return findings.warning(CHECK, found, "listen on 127.0.0.1, or let only the proxy reach this address");
    }
    match trusted.is_empty() {
        true => findings.ok(CHECK, "none trusted: clients have the addresses that they connect from"),
        false => findings.ok(CHECK, "X-Forwarded-For is believed from http.trusted_proxies only"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::State;
    use super::*;

    #[test]
    fn trust_that_is_missing_or_too_wide_is_noticed() {
        let https = "public_url = 'https://api.example.com'\n";
        let table = [
            (String::new(), State::Ok),
            ("http.trusted_proxies = ['0.0.0.0/0']".to_owned(), State::Problem),
            ("http.trusted_proxies = ['::/0']".to_owned(), State::Problem),
            (https.to_owned(), State::Warning),
            (format!("{https}http.trusted_proxies = ['127.0.0.1']"), State::Ok),
            (format!("{https}http.trusted_proxies = ['10.0.0.9']\nlisten = '0.0.0.0:8787'"), State::Warning),
            (format!("{https}listen = '0.0.0.0:443'\ntls = {{ certificate = 'c', key = 'k' }}"), State::Ok),
        ];
        for (text, state) in table {
            let config: Config = toml::from_str(&text).unwrap();
            let mut findings = Findings::default();
            check(&config, &mut findings);
            assert_eq!(findings.of(CHECK).iter().map(|(state, _)| *state).collect::<Vec<_>>(), [state], "{text}");
        }
    }
}
