//! Documents of a service as it sent them: unchanged for programs, and indented on a terminal.

use std::io::Write;

use crate::failure::Failure;
use crate::screen::Screen;

/// Writes a document, and a line break if it does not end with one.
pub(crate) fn write_as_sent(out: &mut dyn Write, document: &[u8]) -> Result<(), Failure> {
    write_for(Screen::current(), out, document)
}

fn write_for(screen: Screen, out: &mut dyn Write, document: &[u8]) -> Result<(), Failure> {
    if screen.terminal {
        out.write_all(&indented(document))?;
        return Ok(writeln!(out)?);
    }
    out.write_all(document)?;
    if !document.ends_with(b"\n") {
        writeln!(out)?;
    }
    Ok(())
}

/// Puts each member and element on its own line. Tokens are unchanged, so no digit is lost.
fn indented(document: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(document.len().saturating_mul(2));
    let (mut depth, mut is_opened, mut is_string, mut is_escaped) = (0_usize, false, false, false);
    for byte in document {
        if is_string {
            text.push(*byte);
            is_string = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
            continue;
        }
        let closes = matches!(byte, b'}' | b']');
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            // Empty ones stay on one line.
            _ if closes => {
                depth = depth.saturating_sub(1);
                if !is_opened {
                    break_line(&mut text, depth);
                }
            }
            _ if is_opened => break_line(&mut text, depth),
            _ => {}
        }
        is_opened = matches!(byte, b'{' | b'[');
        text.push(*byte);
        match byte {
            b'{' | b'[' => depth += 1,
            b',' => break_line(&mut text, depth),
            b':' => text.push(b' '),
            b'"' => is_string = true,
            _ => {}
        }
    }
    text
}

fn break_line(text: &mut Vec<u8>, depth: usize) {
    text.push(b'\n');
    text.extend(std::iter::repeat_n(b' ', 2 * depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_indented_on_a_terminal_and_unchanged_elsewhere() {
        let sent = br#"{"a":1.00,"b":[1e2,{"c":"x, \"y\": {"}],"d":{},"e":[ ],"f":"\\"}"#;
        let shown = "{\n  \"a\": 1.00,\n  \"b\": [\n    1e2,\n    {\n      \"c\": \"x, \\\"y\\\": {\"\n    }\n  ],\n  \
                     \"d\": {},\n  \"e\": [],\n  \"f\": \"\\\\\"\n}\n";
        let write = |terminal| {
            let mut out = Vec::new();
            write_for(Screen { terminal, ..Screen::current() }, &mut out, sent).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(write(true), shown);
        assert_eq!(write(false), format!("{}\n", std::str::from_utf8(sent).unwrap()));
        // The same form as that of documents of our own.
        let text = std::str::from_utf8(sent).unwrap().replace("1e2", "100.0");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        assert_eq!(indented(text.replace("1.00", "1.0").as_bytes()), pretty.as_bytes());
    }
}
