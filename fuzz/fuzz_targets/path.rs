//! Request targets: the normal form is a fixed point, and contains nothing that another server would read differently.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metering_core::catalogue::RequestPath;

fuzz_target!(|text: &str| {
    let Ok(path) = RequestPath::parse(text) else { return };
    let normal = path.as_str();
    let again = RequestPath::parse(normal).expect("the normal form is accepted");
    assert_eq!(again.as_str(), normal, "the normal form is a fixed point");
    assert!(normal.starts_with('/') && normal.is_ascii());
    assert!(!normal.contains(['\\', '?', '#', ' ']) && !normal.bytes().any(|byte| byte.is_ascii_control()));
    assert!(path.segments().all(|segment| segment != "." && segment != ".." && !segment.contains('/')));
});
