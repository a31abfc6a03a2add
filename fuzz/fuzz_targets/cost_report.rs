//! Reports of what a response cost, in bodies, events and lines, and estimates from a request's body.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use metering_core::Catalogue;
use metering_core::catalogue::UsagePrice;

const CATALOGUE: &str = r#"{"market": "M", "version": 1, "endpoints": [{"path": "/x", "method": "POST", "metered": true,
    "price": {"max": "0.5", "units": {"in": "0.00000025", "out": "0.000001"},
        "report": {"json": {"in": "/usage/in", "out": "/usage/out"}},
        "estimate": {"json": {"out": ["/max", "/most"]}, "bytes": "in", "times": "/n"}}}]}"#;

static USAGE_PRICE: LazyLock<Arc<UsagePrice>> = LazyLock::new(|| {
    let catalogue = Catalogue::from_json(CATALOGUE).expect("the catalogue is valid");
    Arc::clone(catalogue.routes()[0].usage_price().expect("the route is priced by usage"))
});

fuzz_target!(|body: &[u8]| {
    let cut = body.last().map_or(0, |last| usize::from(*last) % body.len());
    for content_type in ["text/event-stream", "application/x-ndjson", "application/json"] {
        let read = |pieces: &[&[u8]]| {
            let mut reader = USAGE_PRICE.body_reader(Some(content_type)).expect("the report is in the body");
            pieces.iter().for_each(|piece| reader.push(piece));
            reader.finish()
        };
        let whole = read(&[body]);
        assert_eq!(read(&[&body[..cut], &body[cut..]]), whole, "pieces change the report");
        if let Ok(Some(cost)) = whole {
            assert!(!cost.is_negative(), "a cost is negative");
        }
    }
    let hold = USAGE_PRICE.hold(Some(body));
    assert!(hold >= USAGE_PRICE.min() && hold <= USAGE_PRICE.max(), "a hold is out of bounds");
});
