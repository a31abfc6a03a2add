use super::*;
use crate::catalogue::usage_price::tests::usage_price;

fn cost(price: &UsagePrice, headers: &[(&str, &'static [u8])]) -> Result<Option<String>, ReportError> {
    let header = |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    price.cost_from_headers(header).map(|cost| cost.map(|cost| cost.to_string()))
}

#[test]
fn credits_in_a_header_are_the_cost() {
    let price = usage_price(r#"{"max": "1", "min": "0.01", "report": {"header": "X-Cost"}}"#);
    // the header, the cost
    let table: [(&[u8], &str); 8] = [
        (b"0.25", "0.25"),
        (b"  2 \t", "2"),
        (b"0.001", "0.01"),
        (b"25e-2", "0.25"),
        // A binary float of 0.1 + 0.2, and amounts below an atom, are rounded up.
        (b"0.30000000000000004", "0.3000000001"),
        (b"0", "0.01"),
        (b"0.1234567890123456789012345678901234567890", "0.123456789"),
        (b"1e9", "1000000"),
    ];
    for (value, expected) in table {
        assert_eq!(cost(&price, &[("x-cost", value)]), Ok(Some(expected.to_owned())), "{value:?}");
    }
    assert_eq!(cost(&price, &[("x-other", b"1")]), Ok(None));
    for value in [&b"-1"[..], b"", b"free", b"0.1 credits", b"1,000", b"\xff", b"NaN", b"inf", b"0x1"] {
        assert!(matches!(cost(&price, &[("x-cost", value)]), Err(ReportError::Unreadable { .. })), "{value:?}");
    }
}

/// Such a cost is unknown, so the caller captures the hold. A smaller capture would reward bad reports.
#[test]
fn absurd_costs_are_too_large() {
    let in_credits = usage_price(r#"{"max": "1", "report": {"header": "x-cost"}}"#);
    let in_units = usage_price(r#"{"max": "1", "units": {"n": "0.1"}, "report": {"header": {"n": "x-cost"}}}"#);
    let long = [b'9'; 400];
    for value in [&b"1e20"[..], b"1e99", b"1e308", b"1e99999999999999999999", &long] {
        let value: &'static [u8] = value.to_vec().leak();
        let found = cost(&in_credits, &[("x-cost", value)]);
        assert!(matches!(found, Err(ReportError::TooLarge { .. })), "{found:?}");
        if value != b"1e20" {
            let found = cost(&in_units, &[("x-cost", value)]);
            assert!(matches!(found, Err(ReportError::TooLarge { .. })), "{found:?}");
        }
    }
}

#[test]
fn counts_in_headers_are_priced() {
    let price = usage_price(
        r#"{"max": "1", "units": {"input": "0.1", "output": "0.01"}, "report": {"header": {"input": "x-in", "output": "x-out"}}}"#,
    );
    assert_eq!(cost(&price, &[("x-in", b"3"), ("x-out", b"2.5")]), Ok(Some("0.325".to_owned())));
    assert_eq!(cost(&price, &[("x-out", b"2")]), Ok(Some("0.02".to_owned())), "a unit that is missing counts as zero");
    assert_eq!(cost(&price, &[("x-out", b"0")]), Ok(Some("0".to_owned())));
    assert_eq!(cost(&price, &[]), Ok(None));
    assert!(cost(&price, &[("x-in", b"3"), ("x-out", b"many")]).is_err());
}

#[test]
fn report_in_the_body_is_not_in_headers() {
    let price = usage_price(r#"{"max": "1", "report": {"json": "/cost"}}"#);
    assert_eq!(cost(&price, &[("cost", b"1"), ("/cost", b"1")]), Ok(None));
}

#[test]
fn errors_name_the_place_and_cut_the_value() {
    let price = usage_price(r#"{"max": "1", "report": {"header": "x-cost"}}"#);
    let error = cost(&price, &[("x-cost", b"-1")]).unwrap_err().to_string();
    assert_eq!(error, "the response does not report its cost: x-cost is -1: negative");
    let error = cost(&price, &[("x-cost", &[b'\n'; 10_000])]).unwrap_err();
    let ReportError::Unreadable { value, .. } = error else { panic!("{error}") };
    assert_eq!((value.chars().count(), value.contains('\n')), (64, false));
}
