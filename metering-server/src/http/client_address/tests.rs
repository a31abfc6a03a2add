//! Spoofed lists, chains of proxies, and malformed lists.

use proptest::prelude::*;

use super::*;
use crate::config::Network;

fn header(lines: &[&[u8]]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(FORWARDED_FOR, HeaderValue::from_bytes(line).unwrap());
    }
    headers
}

fn find(peer: &str, lines: &[&[u8]]) -> ClientAddress {
    let proxies = ["10.0.0.0/8", "127.0.0.1", "fd00::/8"]
        .map(|text| text.parse::<Network>().unwrap())
        .into_iter()
        .collect::<TrustedProxies>();
    ClientAddress::find(peer.parse().unwrap(), &header(lines), &proxies)
}

#[test]
fn client_is_the_nearest_address_not_a_trusted_proxy() {
    type Lines = &'static [&'static [u8]];
    // situation, peer, header lines, client
    let table: [(&str, &str, Lines, &str); 32] = [
        ("no proxy, no header", "8.8.8.8", &[], "8.8.8.8"),
        ("no proxy, spoofed", "8.8.8.8", &[b"1.2.3.4"], "8.8.8.8"),
        ("no proxy, spoofed as one", "8.8.8.8", &[b"1.2.3.4, 10.0.0.1"], "8.8.8.8"),
        ("no proxy, IPv6", "2001:db8::1", &[b"1.2.3.4"], "2001:db8::1"),
        ("no proxy, mapped", "::ffff:8.8.8.8", &[], "8.8.8.8"),
        ("a proxy", "10.0.0.1", &[b"1.2.3.4"], "1.2.3.4"),
        ("a proxy, mapped", "::ffff:10.0.0.1", &[b"1.2.3.4"], "1.2.3.4"),
        ("a proxy, IPv6", "fd00::1", &[b"2001:db8::1"], "2001:db8::1"),
        ("spoofed left entry", "10.0.0.1", &[b"6.6.6.6, 1.2.3.4"], "1.2.3.4"),
        ("spoofed proxies", "10.0.0.1", &[b"6.6.6.6, 10.0.0.9, 1.2.3.4"], "1.2.3.4"),
        ("two proxies", "10.0.0.1", &[b"6.6.6.6, 1.2.3.4, 10.0.0.2"], "1.2.3.4"),
        ("proxies of both families", "127.0.0.1", &[b"1.2.3.4, fd00::7, 10.0.0.2"], "1.2.3.4"),
        ("an untrusted proxy in between", "10.0.0.1", &[b"1.2.3.4, 9.9.9.9, 10.0.0.2"], "9.9.9.9"),
        ("lines are one list", "10.0.0.1", &[b"6.6.6.6", b"1.2.3.4", b"10.0.0.3, 10.0.0.2"], "1.2.3.4"),
        ("a spoofed line", "10.0.0.1", &[b"10.0.0.9", b"1.2.3.4"], "1.2.3.4"),
        ("all trusted", "10.0.0.1", &[b"10.0.0.4, 10.0.0.3, 127.0.0.1"], "10.0.0.4"),
        ("a proxy without header", "10.0.0.1", &[], "10.0.0.1"),
        ("an empty line", "10.0.0.1", &[b""], "10.0.0.1"),
        ("an empty entry ends it", "10.0.0.1", &[b"1.2.3.4, , 10.0.0.2"], "10.0.0.2"),
        ("an empty first entry", "10.0.0.1", &[b", 1.2.3.4"], "1.2.3.4"),
        ("garbage alone", "10.0.0.1", &[b"unknown"], "10.0.0.1"),
        ("garbage ends it", "10.0.0.1", &[b"1.2.3.4, unknown, 10.0.0.2"], "10.0.0.2"),
        ("garbage on the left", "10.0.0.1", &[b"<script>, 1.2.3.4"], "1.2.3.4"),
        ("bytes on the left", "10.0.0.1", &[b"\xff\xfe\xc3, 1.2.3.4"], "1.2.3.4"),
        ("a zone", "10.0.0.1", &[b"fe80::1%eth0"], "10.0.0.1"),
        ("a port too high", "10.0.0.1", &[b"1.2.3.4:99999"], "10.0.0.1"),
        ("short forms", "10.0.0.1", &[b"1.2.3"], "10.0.0.1"),
        ("a port", "10.0.0.1", &[b"6.6.6.6, 1.2.3.4:5678"], "1.2.3.4"),
        ("ports and brackets", "10.0.0.1", &[b"[2001:db8::1]:80, [fd00::2]:81, [fd00::3]"], "2001:db8::1"),
        ("mapped", "10.0.0.1", &[b"6.6.6.6, ::ffff:1.2.3.4, ::ffff:10.0.0.2"], "1.2.3.4"),
        ("mapped with a port", "10.0.0.1", &[b"[::ffff:1.2.3.4]:80"], "1.2.3.4"),
        ("spaces and tabs", "10.0.0.1", &[b"6.6.6.6 ,\t1.2.3.4 ,10.0.0.2"], "1.2.3.4"),
    ];
    for (situation, peer, lines, client) in table {
        assert_eq!(find(peer, lines).ip().to_string(), client, "{situation}");
    }
}

#[test]
fn only_the_list_of_a_trusted_proxy_is_extended_and_forwarded() {
    type Lines = &'static [&'static [u8]];
    // peer, header lines, sent on
    let table: [(&str, Lines, &[u8]); 7] = [
        ("8.8.8.8", &[], b"8.8.8.8"),
        ("8.8.8.8", &[b"6.6.6.6"], b"8.8.8.8"),
        ("::ffff:8.8.8.8", &[b"6.6.6.6"], b"8.8.8.8"),
        ("10.0.0.1", &[], b"10.0.0.1"),
        ("10.0.0.1", &[b"6.6.6.6, 1.2.3.4"], b"6.6.6.6, 1.2.3.4, 10.0.0.1"),
        ("10.0.0.1", &[b"\xff", b"", b"1.2.3.4"], b"\xff, 1.2.3.4, 10.0.0.1"),
        ("fd00::1", &[b"1.2.3.4"], b"1.2.3.4, fd00::1"),
    ];
    for (peer, lines, expected) in table {
        let sent_on = find(peer, lines).forwarded_for(&header(lines)).unwrap();
        assert_eq!(sent_on.as_bytes(), expected, "{peer} {lines:?}");
    }
}

proptest! {
    #[test]
    fn untrusted_forwarded_headers_do_not_change_the_client_address(
        spoofed in prop::collection::vec("([ -~]|[0-9a-f:., \\[\\]]|10\\.0\\.0\\.1){0,40}", 0..4),
        joined in any::<bool>(),
    ) {
        let spoofed: Vec<_> = spoofed.iter().map(|line| line.as_bytes()).collect();
        // The proxy appends to the last line or adds its own.
        let added = if joined {
            [&spoofed.join(b", ".as_slice()), b"1.2.3.4".as_slice()].join(b", ".as_slice())
        } else {
            b"1.2.3.4".to_vec()
        };
        let mut lines = if joined { Vec::new() } else { spoofed };
        lines.push(&added);
        prop_assert_eq!(find("10.0.0.1", &lines).ip(), IpAddr::from([1, 2, 3, 4]));
    }
}
