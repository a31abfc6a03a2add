//! JSON for people: indented, with members in their order and numbers with all their digits.

/// Values that fit are written on one line.
const LINE_CHARS: usize = 100;

/// Valid JSON, indented, with a line break at its end.
pub(super) fn indented(json: &str) -> String {
    let (mut text, mut depth, mut rest) = (String::with_capacity(json.len() * 2), 0_usize, json.trim_start());
    let line = |text: &mut String, depth: usize| {
        text.push('\n');
        text.push_str(&"  ".repeat(depth));
    };
    while let Some(first) = rest.chars().next() {
        let mut end = first.len_utf8();
        match first {
            '{' | '[' => {
                let whole = &rest[..value_end(rest)];
                let short = on_one_line(whole);
                if short.len() <= LINE_CHARS {
                    end = whole.len();
                    text.push_str(&short);
                } else {
                    depth += 1;
                    text.push(first);
                    line(&mut text, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut text, depth);
                text.push(first);
            }
            ',' => {
                text.push(first);
                line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            '"' => {
                end = value_end(rest);
                text.push_str(&rest[..end]);
            }
            _ => text.push(first),
        }
        rest = rest[end..].trim_start();
    }
    text.push('\n');
    text
}

/// Where the object, array or string at the beginning of a text ends.
fn value_end(json: &str) -> usize {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for (position, byte) in json.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && !in_string && !is_escaped {
            return position + 1;
        }
    }
    json.len()
}

/// A value with one space after each comma and colon.
fn on_one_line(json: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(json.len()), json);
    while let Some(first) = rest.chars().next() {
        let end = if first == '"' { value_end(rest) } else { first.len_utf8() };
        text.push_str(&rest[..end]);
        if matches!(first, ',' | ':') {
            text.push(' ');
        }
        rest = rest[end..].trim_start();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_indented_and_nothing_else_changes() {
        assert_eq!(
            indented(r#" {"b" :1e-7,"a":[ 1,"x, {\"y\": 2}" ]} "#),
            "{\"b\": 1e-7, \"a\": [1, \"x, {\\\"y\\\": 2}\"]}\n"
        );
        let long = "é".repeat(60);
        assert_eq!(
            indented(&format!(r#"{{"a":["{long}","\\"],"b":{{}},"c":"é"}}"#)),
            format!("{{\n  \"a\": [\n    \"{long}\",\n    \"\\\\\"\n  ],\n  \"b\": {{}},\n  \"c\": \"é\"\n}}\n")
        );
    }
}
