use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::*;
use crate::catalogue::pointer::Pointer;

/// The values found at each of `pointers`, and the verdict.
fn scan(pointers: &[&str], pieces: &[&[u8]]) -> (Vec<(usize, String)>, Verdict) {
    let pointers: Vec<_> = pointers.iter().map(|text| Pointer::parse(text).unwrap()).collect();
    let targets = Targets::new(&pointers);
    let (mut scanner, mut all) = (Scanner::new(), Vec::new());
    let mut take = |number: usize, found: ScannedValue<'_>| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        all.push((
            number,
            match found {
                ScannedValue::Null => "null".to_owned(),
                ScannedValue::Bool(value) => value.to_string(),
                ScannedValue::Number(number) => text(number),
                ScannedValue::Text(start, bytes) => format!("{:?} {bytes}", text(start)),
                ScannedValue::Object => "{}".to_owned(),
                ScannedValue::Array => "[]".to_owned(),
                ScannedValue::RepeatedName => "again".to_owned(),
            },
        ));
    };
    for piece in pieces {
        scanner.push(&targets, piece, &mut take);
    }
    let verdict = scanner.finish(&targets, &mut take);
    (all, verdict)
}

#[test]
fn values_are_found_at_pointers() {
    // JSON, pointer, value found
    let table: &[(&str, &str, &[&str])] = &[
        (" 12 ", "", &["12"]),
        (r#"{"a": 1.50e3}"#, "/a", &["1.50e3"]),
        (r#"{"a": {"b": null}}"#, "/a/b", &["null"]),
        (r#"{"a": {"b": null}}"#, "/a", &["{}"]),
        (r#"{"a": ["x", [true]]}"#, "/a/1/0", &["true"]),
        (r#"{"a": ["x", [true]]}"#, "/a/01", &[]),
        (r#"{"a/b": "é\n\u00e9\ud83d\ude00"}"#, "/a~1b", &["\"é\\né😀\" 9"]),
        (r#"{"\u0061": "\ud83d"}"#, "/a", &["\"\u{fffd}\" 3"]),
        (r#"[{"a": 1}, {"a": 2}, 3, {"b": {"a": 4}}]"#, "/*/a", &["1", "2"]),
        (r#"{"x": {"a": 1}, "y": [{"a": 2}]}"#, "/*/a", &["1"]),
        (r#"{"a": 1, "a": 2}"#, "/a", &["1", "again", "2"]),
        (r#"{"a": {"b": 1}, "a": {}}"#, "/a/b", &["1", "again"]),
        (r#"{"a": "", "": false}"#, "/", &["false"]),
    ];
    for (json, pointer, expected) in table {
        let (found, verdict) = scan(&[pointer], &[json.as_bytes()]);
        let found: Vec<_> = found.into_iter().map(|(_, value)| value).collect();
        assert_eq!(
            (found, verdict),
            (expected.iter().map(|text| (*text).to_owned()).collect(), Verdict::Json),
            "{json}"
        );
    }
}

#[test]
fn long_strings_are_checked_to_their_end() {
    let letters = "x".repeat(200);
    // The text after 200 letters, the verdict.
    let table = [("", Verdict::Json), ("\\n\\\"", Verdict::Json), ("\n", Verdict::NotJson), ("\\x", Verdict::NotJson)];
    for (last, verdict) in table {
        for length in 100..200 {
            let json = format!("{{\"a\": \"{}{last}\"}}", &letters[..length]);
            assert_eq!(scan(&["/a"], &[json.as_bytes()]).1, verdict, "{json}");
        }
    }
}

#[test]
fn next_text_is_read_as_by_a_new_scanner() {
    let pointer = Pointer::parse("/a/b").unwrap();
    let targets = Targets::new([&pointer]);
    let (mut scanner, mut found) = (Scanner::new(), Vec::new());
    for text in [r#"{"a": {"b": 1}}"#, "[[", r#"{"a": {"a": 0, "b": 2"#, "{{", r#"{"a": {"b": 3}}"#] {
        scanner.push(&targets, text.as_bytes(), &mut |_, value| {
            if let ScannedValue::Number(number) = value {
                found.push(number.to_vec());
            }
        });
        scanner.restart();
        assert!(!scanner.is_array());
    }
    // The number that was cut off may have continued.
    assert_eq!(found, [b"1", b"3"]);
}

#[test]
fn memory_does_not_grow_with_the_text() {
    let pointer = Pointer::parse("/data/0").unwrap();
    let targets = Targets::new([&pointer]);
    let (mut scanner, mut length) = (Scanner::new(), 0);
    let mut take = |_: usize, found: ScannedValue<'_>| {
        if let ScannedValue::Text(_, bytes) = found {
            length = bytes;
        }
    };
    scanner.push(&targets, b"{\"data\": [\"", &mut take);
    for _ in 0..11 {
        scanner.push(&targets, &[b'x'; 1 << 20], &mut take);
    }
    assert!(scanner.text.start().len() < 1_000);
    scanner.push(&targets, b"\"]}", &mut take);
    assert_eq!((scanner.finish(&targets, &mut take), length), (Verdict::Json, 11 << 20));
    // Depth is bounded.
    for (depth, verdict) in [(DEPTH_MAX, Verdict::Json), (DEPTH_MAX + 1, Verdict::TooDeep)] {
        let json = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(scan(&[], &[json.as_bytes()]).1, verdict);
    }
}

/// Texts that are nearly JSON.
fn nearly_json() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(","),
        Just(":"),
        Just("\"a\""),
        Just("\"\\u00e9\""),
        Just("\"\\ud800\""),
        Just("\"\\x\""),
        Just("\"\n\""),
        Just("\"é\""),
        Just("é"),
        Just("null"),
        Just("true"),
        Just("fals"),
        Just("0"),
        Just("01"),
        Just("-"),
        Just("-1.5e+3"),
        Just("1."),
        Just("2e"),
        Just(" "),
        Just("\t"),
        Just("\"a\":1"),
        Just("[1,2]"),
        Just("{\"b\":{}}"),
        Just("\"")
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec(("[a-c]", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn verdict_is_that_of_serde_json(json in prop_oneof![nearly_json(), value().prop_map(|value| value.to_string())], cut in 1_usize..7) {
        let is_json = serde_json::from_str::<IgnoredAny>(&json).is_ok();
        let pieces: Vec<_> = json.as_bytes().chunks(cut).collect();
        prop_assert_eq!(scan(&["/a", "/*/b"], &pieces).1 == Verdict::Json, is_json, "{}", json);
    }

    #[test]
    fn values_are_those_of_serde_json_however_the_text_is_cut(value in value(), cut in 1_usize..7) {
        let json = value.to_string();
        let pointers = ["", "/a", "/b/c", "/0", "/a/1", "/2/a/b"];
        let pieces: Vec<_> = json.as_bytes().chunks(cut).collect();
        let (mut found, _) = scan(&pointers, &pieces);
        found.sort();
        let mut expected: Vec<_> = pointers.iter().enumerate().filter_map(|(number, pointer)| {
            Some((number, match value.pointer(pointer)? {
                Value::Object(_) => "{}".to_owned(),
                Value::Array(_) => "[]".to_owned(),
                Value::String(text) => format!("{text:?} {}", text.len()),
                other => other.to_string(),
            }))
        }).collect();
        expected.sort();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn bytes_never_panic_and_pieces_never_matter(bytes in proptest::collection::vec(any::<u8>(), 0..100), cut in 1_usize..7) {
        let pieces: Vec<_> = bytes.chunks(cut).collect();
        prop_assert_eq!(scan(&["/a", "/*"], &pieces), scan(&["/a", "/*"], &[&bytes]));
    }
}
