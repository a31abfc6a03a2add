//! Request heads, parsed as by hyper: credentials, route and price.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use metering_core::access::Credentials;
use metering_core::catalogue::RequestPath;
use metering_core::{Catalogue, Credits};

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let text = include_str!("../../metering-sample/routes.json");
    Catalogue::from_json(text).expect("the built-in catalogue is valid")
});

fuzz_target!(|bytes: &[u8]| {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Request::new(&mut headers);
    if !head.parse(bytes).is_ok_and(|status| status.is_complete()) {
        return;
    }
    let lines: Vec<(String, &[u8])> =
        head.headers.iter().map(|header| (header.name.to_ascii_lowercase(), header.value)).collect();
    let credentials = Credentials::read(|name| lines.iter().filter(move |line| line.0 == name).map(|line| line.1));
    let keys = lines.iter().filter(|line| line.0 == "authorization").count();
    assert!(credentials.key.is_none() || keys <= 1, "two keys were sent and one was accepted");
    let (Some(method), Some(target)) = (head.method, head.path) else { return };
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let Ok(path) = RequestPath::parse(path) else { return };
    if let Ok(resolved) = CATALOGUE.resolve(method, &path, query) {
        assert!(resolved.price >= Credits::ZERO);
        // The forwarded request has the same route and price.
        let again = CATALOGUE.resolve(method, &path, resolved.query.as_deref()).expect("the normal form resolves");
        assert_eq!((again.price, &again.query), (resolved.price, &resolved.query));
    }
});
