//! Detects the environment variables that Kubernetes and Docker inject for services.
//!
//! A Kubernetes Service named `metering` gives every pod of its namespace `METERING_SERVICE_HOST`,
//! `METERING_PORT=tcp://10.0.0.1:80`, `METERING_PORT_80_TCP_ADDR` and more; one named `metering-db` gives
//! `METERING_DB_PORT` and so on. They are recognized by name and value together, so that a mistyped variable such as
//! `METERING_PORT=8080` is still an error. No variable of the configuration itself matches both.

use std::net::IpAddr;

const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];

/// Whether a variable was injected for a service.
pub(crate) fn is_service_link(name: &str, value: &str) -> bool {
    let Some(rest) = name.strip_prefix("METERING_") else { return false };
    // The service's name may have more words, as in METERING_DB_PORT.
    let mut parts = vec![rest];
    parts.extend(rest.match_indices('_').map(|(at, _)| &rest[at + 1..]));
    parts.into_iter().any(|variable| is_of_service(variable, value))
}

fn is_of_service(variable: &str, value: &str) -> bool {
    let is_port = |text: &str| text.parse::<u16>().is_ok();
    match variable {
        "SERVICE_HOST" => value.parse::<IpAddr>().is_ok(),
        "SERVICE_PORT" => is_port(value),
        "PORT" => is_link(value),
        _ if variable.starts_with("SERVICE_PORT_") => is_port(value),
        _ => variable.strip_prefix("PORT_").is_some_and(|rest| is_of_port(rest, value)),
    }
}

/// `80_TCP`, `80_TCP_PROTO`, `80_TCP_PORT`, `80_TCP_ADDR`.
fn is_of_port(rest: &str, value: &str) -> bool {
    let Some((number, rest)) = rest.split_once('_') else { return false };
    let (protocol, part) = rest.split_once('_').unwrap_or((rest, ""));
    number.parse::<u16>().is_ok()
        && PROTOCOLS.contains(&protocol)
        && match part {
            "" => is_link(value),
            "PROTO" => value.eq_ignore_ascii_case(protocol),
            "PORT" => value == number,
            "ADDR" => value.parse::<IpAddr>().is_ok(),
            _ => false,
        }
}

/// `tcp://10.0.0.1:80`.
fn is_link(value: &str) -> bool {
    let Some((protocol, address)) = value.split_once("://") else { return false };
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    PROTOCOLS.iter().any(|known| known.eq_ignore_ascii_case(protocol))
        && host.parse::<IpAddr>().is_ok()
        && port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn injected_variables_are_distinguished_from_misspellings() {
        let table = [
            ("METERING_SERVICE_HOST", "10.96.12.3", true),
            ("METERING_SERVICE_PORT", "80", true),
            ("METERING_SERVICE_PORT_HTTP", "80", true),
            ("METERING_PORT", "tcp://10.96.12.3:80", true),
            ("METERING_PORT", "tcp://[fd00::3]:80", true),
            ("METERING_PORT_80_TCP", "tcp://10.96.12.3:80", true),
            ("METERING_PORT_80_TCP_PROTO", "tcp", true),
            ("METERING_PORT_80_TCP_PORT", "80", true),
            ("METERING_PORT_80_TCP_ADDR", "10.96.12.3", true),
            ("METERING_PORT_53_UDP", "udp://10.96.12.3:53", true),
            ("METERING_DB_SERVICE_HOST", "10.96.12.4", true),
            ("METERING_DATABASE_PORT", "tcp://10.96.12.4:5432", true),
            ("METERING_A_B_PORT_5432_TCP_ADDR", "10.96.12.4", true),
            ("METERING_PORT", "8080", false),
            ("METERING_PORT", "127.0.0.1:8080", false),
            ("METERING_PORT", "http://10.0.0.1:80", false),
            ("METERING_PORT", "tcp://example.com:80", false),
            ("METERING_SERVICE_HOST", "example.com", false),
            ("METERING_PORT_80_TCP_HOST", "10.96.12.3", false),
            ("METERING_PORT_80_HTTP", "tcp://10.96.12.3:80", false),
            ("METERING_PORT_80_TCP_PORT", "81", false),
            ("METERING_LISTEM", "10.96.12.3", false),
            ("METERING_SERVICEHOST", "10.96.12.3", false),
            ("METERING_HTTP__PORT_80", "10.96.12.3", false),
            ("OTHER_PORT", "tcp://10.96.12.3:80", false),
        ];
        for (name, value, expected) in table {
            assert_eq!(is_service_link(name, value), expected, "{name}={value}");
        }
    }
}
