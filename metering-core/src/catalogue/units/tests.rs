use super::*;
use proptest::prelude::*;

#[test]
fn unit_prices_are_read_exactly_or_refused() {
    use DecimalError::{Malformed, OutOfRange, TooFine};
    // text, printed
    let table = [
        ("0", Ok("0")),
        ("0.00000025", Ok("0.00000025")),
        ("2.5e-7", Ok("0.00000025")),
        ("0.000000000000000001", Ok("0.000000000000000001")),
        ("1000", Ok("1000")),
        ("0.0000000000000000010", Ok("0.000000000000000001")),
        ("0.0000000000000000001", Err(TooFine)),
        ("1000.000000000000000001", Err(OutOfRange)),
        ("1e22", Err(OutOfRange)),
        ("-0.1", Err(OutOfRange)),
        ("", Err(Malformed)),
        ("1,5", Err(Malformed)),
    ];
    for (text, printed) in table {
        let price = text.parse::<UnitPrice>().map(|price| price.to_string());
        assert_eq!(price, printed.map(str::to_owned), "{text}");
    }
}

#[test]
fn counts_are_read_and_rounded_up_to_nine_decimals() {
    use DecimalError::{Malformed, OutOfRange};
    // text, printed
    let table = [
        ("0", Ok("0")),
        ("-0", Ok("0")),
        ("12", Ok("12")),
        ("1e3", Ok("1000")),
        ("0.000000001", Ok("0.000000001")),
        ("0.0000000011", Ok("0.000000002")),
        ("8.470000267028809", Ok("8.470000268")),
        ("79228162514264337593543950335", Ok("79228162514264337593543950335")),
        ("-1", Err(OutOfRange)),
        ("1e29", Err(OutOfRange)),
        ("NaN", Err(Malformed)),
        ("1 ", Err(Malformed)),
    ];
    for (text, printed) in table {
        let count = text.parse::<Count>().map(|count| count.to_string());
        assert_eq!(count, printed.map(str::to_owned), "{text}");
    }
    assert_eq!(Count::from(u64::MAX).to_string(), u64::MAX.to_string());
}

#[test]
fn counts_are_read_from_json_without_a_float() {
    let counts: Counts = serde_json::from_str(r#"{"a": 9007199254740993, "b": "0.1", "c": 1E2}"#).unwrap();
    assert_eq!(serde_json::to_string(&counts).unwrap(), r#"{"a":9007199254740993,"b":0.1,"c":100}"#);
    assert!(Counts::default().is_empty() && !counts.is_empty());
    for bad in [r#"{"a": -1}"#, r#"{"a": null}"#, r#"{"a": true}"#, r#"{"a": "x"}"#, r#"{"a": [1]}"#, "[]"] {
        assert!(serde_json::from_str::<Counts>(bad).is_err(), "{bad}");
    }
}

#[test]
fn overflow_is_the_largest_amount() {
    let (most, price) = ("79228162514264337593543950335".parse().unwrap(), "1000".parse().unwrap());
    let overflow = ExactCost::ZERO.plus(most, price);
    assert_eq!(overflow.round_up(), Credits::MAX);
    assert_eq!(overflow.plus(Count::from(1), price).round_up(), Credits::MAX);
    assert_eq!(overflow.times(Count::from(1)).round_up(), Credits::MAX);
    let large = ExactCost::ZERO.plus(Count::from(1 << 40), price);
    assert_eq!(large.round_up(), Credits::MAX);
    assert_eq!(large.times(most).round_up(), Credits::MAX);
    assert_eq!(ExactCost::ZERO.plus(most, "0".parse().unwrap()).round_up(), Credits::ZERO);
}

/// Schoolbook arithmetic on decimal digits, least significant first. It shares nothing with the code under test.
mod schoolbook {
    pub(super) fn digits(text: &str, decimals: usize) -> Vec<u8> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let padded = format!("{whole}{fraction:0<decimals$}");
        padded.bytes().rev().map(|byte| byte - b'0').collect()
    }

    pub(super) fn product(a: &[u8], b: &[u8]) -> Vec<u8> {
        let mut sums = vec![0_u32; a.len() + b.len() + 1];
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                sums[i + j] += u32::from(*x) * u32::from(*y);
            }
        }
        carried(sums)
    }

    pub(super) fn sum(a: &[u8], b: &[u8]) -> Vec<u8> {
        let digit = |number: &[u8], place: usize| u32::from(number.get(place).copied().unwrap_or(0));
        carried((0..=a.len().max(b.len())).map(|place| digit(a, place) + digit(b, place)).collect())
    }

    fn carried(mut sums: Vec<u32>) -> Vec<u8> {
        for place in 0..sums.len() - 1 {
            sums[place + 1] += sums[place] / 10;
            sums[place] %= 10;
        }
        sums.into_iter().map(|digit| u8::try_from(digit).unwrap()).collect()
    }

    /// Divides by 10^`places`, rounding up.
    pub(super) fn cut(number: &[u8], places: usize) -> u128 {
        let fraction = number.iter().take(places).any(|digit| *digit != 0);
        let whole = number.iter().skip(places).rev().fold(0_u128, |sum, digit| sum * 10 + u128::from(*digit));
        whole + u128::from(fraction)
    }
}

fn price_text() -> impl Strategy<Value = String> {
    prop_oneof!["(0|[1-9][0-9]{0,2})(\\.[0-9]{1,18})?", "0\\.0{0,12}[0-9]{1,6}"]
}

fn count_text() -> impl Strategy<Value = String> {
    prop_oneof!["(0|[1-9][0-9]{0,6})(\\.[0-9]{1,9})?", "(0|[1-9][0-9]{0,18})(\\.[0-9]{1,9})?"]
}

proptest! {
    #[test]
    fn costs_are_those_of_schoolbook_arithmetic(
        parts in proptest::collection::vec((count_text(), price_text()), 1..6),
        factor in proptest::option::of("[1-9][0-9]{0,2}(\\.[0-9]{1,9})?|0\\.0{0,7}[1-9]"),
    ) {
        let mut cost = ExactCost::ZERO;
        let mut expected = vec![0];
        for (count, price) in &parts {
            cost = cost.plus(count.parse().unwrap(), price.parse().unwrap());
            let part = schoolbook::product(&schoolbook::digits(count, 9), &schoolbook::digits(price, 18));
            expected = schoolbook::sum(&expected, &part);
        }
        let mut places = 27;
        if let Some(factor) = &factor {
            // An overflow counts as the largest amount even if the factor would make it smaller.
            prop_assume!(cost.0.is_some() || !factor.starts_with('0'));
            cost = cost.times(factor.parse().unwrap());
            expected = schoolbook::product(&expected, &schoolbook::digits(factor, 9));
            places += 9;
        }
        let atoms = schoolbook::cut(&schoolbook::product(&expected, &schoolbook::digits("7200000000", 0)), places);
        let expected = i64::try_from(atoms).map_or(Credits::MAX, Credits::from_atoms);
        prop_assert_eq!(cost.round_up(), expected);
    }

    #[test]
    fn prices_and_counts_are_printed_as_they_are_read(price in price_text(), count in count_text()) {
        let price: UnitPrice = price.parse().unwrap();
        let count: Count = count.parse().unwrap();
        prop_assert_eq!(price.to_string().parse(), Ok(price));
        prop_assert_eq!(count.to_string().parse(), Ok(count));
    }

    #[test]
    fn text_never_panics(text in "\\PC{0,40}|[-0-9.eE+]{0,30}") {
        let _ = (text.parse::<UnitPrice>(), text.parse::<Count>(), Credits::parse_rounding_up(&text));
    }
}
