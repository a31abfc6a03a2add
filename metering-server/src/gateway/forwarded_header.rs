//! `Forwarded` (RFC 7239): the client and the requested address, as one header for the upstream.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::http::ClientAddress;

/// Bytes to reserve for the rest of a `Forwarded`: the names of its parameters, and one more address.
const REST: usize = 96;

/// The `Forwarded` for the upstream: the one that a trusted proxy sent, or else one that says the same as
/// `X-Forwarded-For`, with the client's scheme and host; followed by the connection's peer. `addresses` is the
/// `X-Forwarded-For` for the upstream.
pub(crate) fn extended(
    received: &HeaderMap,
    client: &ClientAddress,
    addresses: &HeaderValue,
    scheme: &str,
    host: Option<&str>,
) -> Option<HeaderValue> {
    if client.is_from_proxy()
        && let Some(list) = list(received, &header::FORWARDED)
    {
        let mut value = String::with_capacity(list.len() + REST);
        value.extend([&*list, ", "]);
        push_node(&mut value, Some(client.peer())).ok()?;
        return HeaderValue::try_from(value).ok();
    }
    let addresses = addresses.to_str().ok()?;
    let mut value = String::with_capacity(addresses.len() + host.map_or(0, str::len) + REST);
    for (position, address) in addresses.split(',').enumerate() {
        if position > 0 {
            value.push_str(", ");
        }
        push_node(&mut value, parse(address)).ok()?;
        if position == 0 {
            value.extend([";proto=", scheme]);
            value.extend(host.map(|host| [";host=\"", host, "\""]).into_iter().flatten());
        }
    }
    HeaderValue::try_from(value).ok()
}

/// Adds an address as `for=...` (RFC 7239, section 6): one of IPv6 is quoted and in brackets.
fn push_node(value: &mut String, address: Option<IpAddr>) -> std::fmt::Result {
    match address {
        Some(IpAddr::V4(address)) => write!(value, "for={address}"),
        Some(IpAddr::V6(address)) => write!(value, "for=\"[{address}]\""),
        None => value.write_str("for=unknown"),
    }
}

/// An address, with or without a port.
fn parse(address: &str) -> Option<IpAddr> {
    let address = address.trim();
    let parsed = address.parse().or_else(|_| address.parse::<SocketAddr>().map(|with_port| with_port.ip()));
    parsed.ok().map(|address: IpAddr| address.to_canonical())
}

/// All lines of a list, as one. `None` if there are none, or one is not text.
pub(crate) fn list<'r>(received: &'r HeaderMap, name: &HeaderName) -> Option<Cow<'r, str>> {
    let mut list = Cow::Borrowed("");
    for line in received.get_all(name) {
        let line = line.to_str().ok()?.trim();
        if list.is_empty() {
            list = Cow::Borrowed(line);
        } else if !line.is_empty() {
            list.to_mut().extend([", ", line]);
        }
    }
    (!list.is_empty()).then_some(list)
}

/// The parameter with this name, such as `proto`, from the proxy that is nearest to the client.
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
            let client = client(&received, is_proxy);
            let addresses = client.forwarded_for(&received).unwrap();
            let sent = extended(&received, &client, &addresses, "https", Some("a.example:81"));
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
