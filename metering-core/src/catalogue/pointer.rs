//! JSON pointers (RFC 6901), looked up in JSON text without turning its numbers into floats.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Longer pointers are refused. Bounds the depth of a look-up.
const BYTES_MAX: usize = 256;

/// A valid JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pointer {
    text: Box<str>,
    /// The reference tokens, unescaped.
    tokens: Box<[Box<str>]>,
}

impl Pointer {
    /// Parses a pointer.
    ///
    /// # Errors
    /// The problem, for the author of a catalogue.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > BYTES_MAX {
            return Err(format!("a JSON pointer has at most {BYTES_MAX} bytes"));
        }
        let token = |escaped: &str| -> Result<Box<str>, String> {
            let mut pieces = escaped.split('~').skip(1);
            if pieces.any(|piece| !piece.starts_with(['0', '1'])) {
                return Err(format!("{text}: in a JSON pointer, write ~ as ~0 and / as ~1"));
            }
            Ok(escaped.replace("~1", "/").replace("~0", "~").into())
        };
        let tokens = match text.strip_prefix('/') {
            Some(rest) => rest.split('/').map(token).collect::<Result<_, _>>()?,
            None if text.is_empty() => Box::default(),
            None => return Err(format!("{text}: a JSON pointer begins with /, for example /{text}")),
        };
        Ok(Self { text: text.into(), tokens })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// The reference tokens, unescaped.
    pub(super) fn tokens(&self) -> &[Box<str>] {
        &self.tokens
    }
}

/// The result of a look-up.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lookup<'j> {
    /// Missing, or `null`.
    Nothing,
    /// One value.
    Value(&'j RawValue),
    /// A value below a duplicate name of an object. Readers disagree on which one counts.
    Ambiguous,
}

/// Looks up `pointers` in a JSON text, in one pass. If a member's name matches only when case is ignored, as some
/// servers do, the value is ambiguous.
///
/// # Errors
/// When the text is not JSON.
pub(super) fn look_up<'j>(json: &'j str, pointers: &[&Pointer]) -> Result<Vec<Lookup<'j>>, serde_json::Error> {
    let mut found = vec![Lookup::Nothing; pointers.len()];
    let value: &RawValue = serde_json::from_str(json)?;
    let wanted = pointers.iter().enumerate().map(|(slot, pointer)| Wanted { slot, tokens: &pointer.tokens }).collect();
    Search { wanted, found: &mut found }.descend(value)?;
    Ok(found)
}

/// The rest of a pointer, below the value that the search has reached.
#[derive(Clone, Copy)]
struct Wanted<'p> {
    slot: usize,
    tokens: &'p [Box<str>],
}

impl Wanted<'_> {
    fn below(self) -> Self {
        Self { slot: self.slot, tokens: &self.tokens[1..] }
    }
}

/// A search of one value and its descendants.
struct Search<'p, 'f, 'j> {
    wanted: Vec<Wanted<'p>>,
    found: &'f mut [Lookup<'j>],
}

impl<'j> Search<'_, '_, 'j> {
    fn descend(mut self, value: &'j RawValue) -> Result<(), serde_json::Error> {
        let json = value.get();
        for wanted in self.wanted.iter().filter(|wanted| wanted.tokens.is_empty() && json != "null") {
            let slot = &mut self.found[wanted.slot];
            *slot = if matches!(slot, Lookup::Nothing) { Lookup::Value(value) } else { Lookup::Ambiguous };
        }
        self.wanted.retain(|wanted| !wanted.tokens.is_empty());
        match json.as_bytes().first() {
            _ if self.wanted.is_empty() => Ok(()),
            Some(b'{') => serde_json::Deserializer::from_str(json).deserialize_map(self),
            Some(b'[') => serde_json::Deserializer::from_str(json).deserialize_seq(self),
            _ => Ok(()),
        }
    }

    /// Searches a member or element for those pointers that lead there.
    fn enter<E: serde::de::Error>(&mut self, wanted: Vec<Wanted<'_>>, value: &'j RawValue) -> Result<(), E> {
        let below = wanted.into_iter().map(Wanted::below).collect();
        Search { wanted: below, found: self.found }.descend(value).map_err(E::custom)
    }
}

/// Whether a lenient JSON reader may confuse two names: it ignores case, and folds the two letters outside ASCII whose
/// lower case is ASCII (as Go's `encoding/json` does).
pub(super) fn is_same_name(one: &str, other: &str) -> bool {
    let fold = |letter: char| match letter {
        '\u{212a}' => 'k',
        '\u{17f}' => 's',
        letter => letter.to_ascii_lowercase(),
    };
    one.chars().map(fold).eq(other.chars().map(fold))
}

impl<'de> Visitor<'de> for Search<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        // For each pointer: how often its name occurred, and whether once in another spelling.
        let mut times_seen = vec![0_usize; self.wanted.len()];
        let mut misspelt = vec![false; self.wanted.len()];
        while let Some(name) = map.next_key::<String>()? {
            let mut here = Vec::new();
            for (index, wanted) in self.wanted.iter().enumerate() {
                let exact = *name == *wanted.tokens[0];
                if exact || is_same_name(&name, &wanted.tokens[0]) {
                    times_seen[index] += 1;
                    misspelt[index] |= !exact;
                    here.push(*wanted);
                }
            }
            if here.is_empty() {
                map.next_value::<IgnoredAny>()?;
            } else {
                self.enter(here, map.next_value()?)?;
            }
        }
        for (index, wanted) in self.wanted.iter().enumerate() {
            let slot = &mut self.found[wanted.slot];
            if matches!(slot, Lookup::Value(_)) && (times_seen[index] > 1 || misspelt[index]) {
                *slot = Lookup::Ambiguous;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        let mut position = 0_usize;
        while let Some(element) = seq.next_element::<&'de RawValue>()? {
            let name = position.to_string();
            let here: Vec<_> = self.wanted.iter().filter(|wanted| *wanted.tokens[0] == *name).copied().collect();
            if !here.is_empty() {
                self.enter(here, element)?;
            }
            position += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(json: &str, pointer: &str) -> String {
        let pointer = Pointer::parse(pointer).unwrap();
        match look_up(json, &[&pointer]).map(|found| found[0]) {
            Ok(Lookup::Nothing) => "nothing".to_owned(),
            Ok(Lookup::Value(value)) => value.get().to_owned(),
            Ok(Lookup::Ambiguous) => "ambiguous".to_owned(),
            Err(_) => "not JSON".to_owned(),
        }
    }

    #[test]
    fn values_are_found_as_rfc_6901_says() {
        // The example of section 5, and more.
        let example = r#"{"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, "k\"l": 6,
            " ": 7, "m~n": 8, "deep": [{"x": 1.50}, {"x": [10, {"y": null}]}], "01": 9}"#;
        // pointer, value
        let table = [
            ("/foo", r#"["bar", "baz"]"#),
            ("/foo/0", r#""bar""#),
            ("/foo/00", "nothing"),
            ("/foo/-", "nothing"),
            ("/foo/2", "nothing"),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"),
            ("/i\\j", "5"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
            ("/deep/0/x", "1.50"),
            ("/deep/1/x/0", "10"),
            ("/deep/1/x/1/y", "nothing"),
            ("/deep/1/x/1/y/z", "nothing"),
            ("/01", "9"),
            ("/foo/bar", "nothing"),
        ];
        for (pointer, value) in table {
            assert_eq!(found(example, pointer), value, "{pointer}");
        }
        assert_eq!(found(" 12 ", ""), "12");
        for json in ["", "{", "{}x", r#"{"a": 1,}"#, "\u{feff}{}"] {
            assert_eq!(found(json, "/a"), "not JSON", "{json}");
        }
    }

    #[test]
    fn name_that_appears_twice_is_ambiguous() {
        // JSON, pointer, value found
        let table = [
            (r#"{"a": 1, "a": 2}"#, "/a", "ambiguous"),
            (r#"{"a": 1, "a": null}"#, "/a", "ambiguous"),
            (r#"{"a": {"b": 1}, "a": {}}"#, "/a/b", "ambiguous"),
            (r#"{"a": {}, "a": {}}"#, "/a/b", "nothing"),
            (r#"{"a": 1, "\u0061": 2}"#, "/a", "ambiguous"),
            (r#"{"a": 1, "A": 2}"#, "/a", "ambiguous"),
            (r#"{"A": 2}"#, "/a", "ambiguous"),
            (r#"{"A": {"b": 2}}"#, "/a/b", "ambiguous"),
            (r#"{"A": {"c": 2}}"#, "/a/b", "nothing"),
            (r#"{"b": {"a": 1}, "c": {"a": 1}}"#, "/b/a", "1"),
        ];
        for (json, pointer, expected) in table {
            assert_eq!(found(json, pointer), expected, "{json} {pointer}");
        }
    }

    #[test]
    fn several_pointers_are_looked_up_at_once() {
        let pointers = ["/a", "/a/b", "/a/c/0", "/d"].map(|text| Pointer::parse(text).unwrap());
        let found = look_up(r#"{"a": {"b": 1, "c": [2]}}"#, &pointers.each_ref()).unwrap();
        let text =
            |found: &Lookup<'_>| if let Lookup::Value(value) = found { value.get().to_owned() } else { "".into() };
        assert_eq!(found.iter().map(text).collect::<Vec<_>>(), [r#"{"b": 1, "c": [2]}"#, "1", "2", ""]);
    }

    #[test]
    fn invalid_pointers_are_refused() {
        for text in ["a", "a/b", "/a~", "/~2", "/~01~", &format!("/{}", "a".repeat(256))] {
            assert!(Pointer::parse(text).is_err(), "{text}");
        }
        assert_eq!(Pointer::parse("/~01").unwrap().tokens[0].as_ref(), "~1");
        assert_eq!(Pointer::parse("/a~0/b").unwrap().as_str(), "/a~0/b");
    }
}
