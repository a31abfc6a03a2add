//! The documents name every error code and every kind of event, and none that does not exist.

use std::collections::BTreeSet;
use std::path::Path;

use metering_core::events::EventKind;
use metering_core::wire::ErrorCode;
use metering_tests::documents::{Document, documents};

/// Types and codes of errors in the shapes of other services, and of an upstream in an example.
const OTHER_ERRORS: [&str; 11] = [
    "authentication_error",
    "billing_error",
    "block_not_final",
    "insufficient_quota",
    "not_found_error",
    "overloaded_error",
    "permission_error",
    "rate_limit_error",
    "request_too_large",
    "service_unavailable_error",
    "timeout_error",
];

/// A file, not an event.
const OTHER_EVENTS: [&str; 1] = ["payment.json"];

/// All documents except the changelog: what it says of earlier versions was true then.
fn current() -> impl Iterator<Item = (String, Document)> {
    let all = documents().into_iter().filter(|(file, _)| file != Path::new("CHANGELOG.md"));
    all.map(|(file, document)| (file.display().to_string(), document))
}

/// The codes that a document gives a status, as in "503 `overloaded`", or an error, as in `{"error": "overloaded"}`.
fn codes(document: &Document) -> impl Iterator<Item = (Option<u16>, &str)> {
    let with_status = document.code_spans.iter().filter_map(|span| {
        let status = span.before.strip_suffix(' ')?.rsplit([' ', '(']).next()?.parse::<u16>().ok()?;
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        ((400..600).contains(&status) && span.code.bytes().all(is_name)).then_some((Some(status), span.code.as_str()))
    });
    let texts = document.code_blocks.iter().map(|block| &block.text);
    let texts = texts.chain(document.code_spans.iter().map(|span| &span.code));
    let in_json = texts.flat_map(|text| text.split("\"error\":").skip(1)).filter_map(|rest| {
        let code = rest.trim_start().strip_prefix('"')?.split('"').next()?;
        Some((None, code))
    });
    with_status.chain(in_json)
}

#[test]
fn documents_name_every_error_code_with_its_status_and_no_others() {
    let (mut named, mut wrong) = (BTreeSet::new(), Vec::new());
    for (file, document) in current() {
        named.extend(document.code_spans.iter().map(|span| span.code.clone()));
        for (status, name) in codes(&document) {
            let code = ErrorCode::from_name(name);
            if code.is_none_or(|code| status.is_some_and(|status| status != code.status()))
                && !OTHER_ERRORS.contains(&name)
            {
                wrong.push(format!("{file} has {status:?} {name}, {:?}", code.map(ErrorCode::status)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let missing: Vec<_> = ErrorCode::ALL.into_iter().filter(|code| !named.contains(code.as_str())).collect();
    assert!(missing.is_empty(), "no document names {missing:?}");
}

#[test]
fn documents_name_every_kind_of_event_and_no_others() {
    let kinds: BTreeSet<_> = EventKind::ALL.map(EventKind::as_str).into_iter().chain(["webhook.test"]).collect();
    let subjects: BTreeSet<_> = kinds.iter().filter_map(|kind| Some(kind.split_once('.')?.0)).collect();
    let (mut named, mut wrong) = (BTreeSet::new(), Vec::new());
    for (file, document) in current() {
        for span in document.code_spans {
            let is_event = span.code.split_once('.').is_some_and(|(subject, change)| {
                subjects.contains(subject) && change.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            });
            if is_event && !kinds.contains(span.code.as_str()) && !OTHER_EVENTS.contains(&span.code.as_str()) {
                wrong.push(format!("{file} names the event {}", span.code));
            }
            named.insert(span.code);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let missing: Vec<_> = kinds.iter().filter(|kind| !named.contains(**kind)).collect();
    assert!(missing.is_empty(), "no document names {missing:?}");
}
