//! `Forwarded` (RFC 7239): who asked, and for which address, as one header for the upstream.

use std::net::{IpAddr, SocketAddr};

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::http::ClientAddress;

/// The `Forwarded` for the upstream: the one that a trusted proxy sent, or else one that says the same as
/// `X-Forwarded-For`, with the client's scheme and host; followed by the connection's peer.
pub(crate) fn extended(
    received: &HeaderMap,
    client: &ClientAddress,
    scheme: &str,
    host: Option<&str>,
) -> Option<HeaderValue> {
    if client.is_from_proxy()
        && let Some(list) = list(received, &header::FORWARDED)
    {
        return HeaderValue::try_from(format!("{list}, {}", node(&client.peer().to_string()))).ok();
    }
    let addresses = client.forwarded_for(received)?;
    let mut nodes = addresses.to_str().ok()?.split(',').map(node);
    let mut value = format!("{};proto={scheme}", nodes.next()?);
    if let Some(host) = host {
        value.push_str(&format!(";host=\"{host}\""));
    }
    for node in nodes {
        value.push_str(", ");
        value.push_str(&node);
    }
    HeaderValue::try_from(value).ok()
}

/// An address as `for=...` (RFC 7239, section 6): one of IPv6 is quoted and in brackets.
fn node(address: &str) -> String {
    let address = address.trim();
    let parsed = address.parse().ok().or_else(|| address.parse::<SocketAddr>().ok().map(|with_port| with_port.ip()));
    match parsed.map(|address: IpAddr| address.to_canonical()) {
        Some(IpAddr::V4(address)) => format!("for={address}"),
        Some(IpAddr::V6(address)) => format!("for=\"[{address}]\""),
        None => "for=unknown".to_owned(),
    }
}

/// All lines of a list, as one. `None` if there are none, or one is not text.
pub(crate) fn list(received: &HeaderMap, name: &HeaderName) -> Option<String> {
    let lines: Result<Vec<_>, _> = received.get_all(name).iter().map(HeaderValue::to_str).collect();
    let lines: Vec<_> = lines.ok()?.into_iter().map(str::trim).filter(|line| !line.is_empty()).collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

/// What the proxy that is nearest to the client said about it under this name, such as `proto`.
pub(crate) fn of_client(received: &HeaderMap, name: &str) -> Option<String> {
    let list = list(received, &header::FORWARDED)?;
    let mut pairs = list.split(',').next()?.split(';').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(found, _)| found.trim().eq_ignore_ascii_case(name))?;
    let value = value.trim().trim_matches('"');
    (!value.is_empty() && !value.contains(['"', '\\'])).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::public_address::tests::{client, headers};

    #[test]
    fn the_list_of_a_trusted_proxy_is_extended_and_any_other_is_replaced() {
        type Received<'a> = &'a [(&'static str, &'static str)];
        // from a trusted proxy, what is received, what the upstream gets
        let table: [(bool, Received<'_>, &str); 6] = [
            (false, &[], "for=10.0.0.1;proto=https;host=\"a.example:81\""),
            (false, &[("forwarded", "for=6.6.6.6")], "for=10.0.0.1;proto=https;host=\"a.example:81\""),
            (
                true,
                &[("forwarded", "for=1.2.3.4;proto=https"), ("forwarded", "for=10.0.0.7")],
                "for=1.2.3.4;proto=https, for=10.0.0.7, for=10.0.0.1",
            ),
            (
                true,
                &[("x-forwarded-for", "2001:db8::1, 1.2.3.4:5678")],
                "for=\"[2001:db8::1]\";proto=https;host=\"a.example:81\", for=1.2.3.4, for=10.0.0.1",
            ),
            (
                true,
                &[("x-forwarded-for", "unknown\"; for=1.1.1.1")],
                "for=unknown;proto=https;host=\"a.example:81\", for=10.0.0.1",
            ),
            (true, &[("forwarded", "")], "for=10.0.0.1;proto=https;host=\"a.example:81\""),
        ];
        for (is_proxy, received, expected) in table {
            let received = headers(received);
            let sent = extended(&received, &client(&received, is_proxy), "https", Some("a.example:81"));
            assert_eq!(sent.unwrap(), expected, "{received:?}");
        }
    }

    #[test]
    fn what_the_first_proxy_said_is_about_the_client() {
        let received = headers(&[("forwarded", "For=1.2.3.4; Proto=https;host=\"a:81\", proto=http;by=x")]);
        let found = ["proto", "host", "by"].map(|name| of_client(&received, name));
        assert_eq!(found, [Some("https".to_owned()), Some("a:81".to_owned()), None]);
    }
}
