//! Formats an event as one line.

use std::io::Write;

use metering_client::Event;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::client::session::json_line::{NotJson, one_line};
use crate::failure::Failure;
use crate::table::printable;

/// How events are printed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    /// As JSON documents, instead of just their data.
    pub(super) events: bool,
    /// To a terminal, which control characters must not reach.
    pub(super) terminal: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    id: Option<&'a str>,
    data: Data<'a>,
}

/// JSON unchanged, with all its digits; anything else as a string.
#[derive(Serialize)]
#[serde(untagged)]
enum Data<'a> {
    Json(&'a RawValue),
    Text(&'a str),
}

impl Form {
    /// Prints an event and flushes, so that readers get the whole line immediately.
    pub(super) fn print(self, event: &Event, out: &mut dyn Write) -> Result<(), Failure> {
        let line = if self.events { document(event)? } else { data(event) };
        let line = if self.terminal { printable(&line) } else { line };
        writeln!(out, "{line}")?;
        Ok(out.flush()?)
    }
}

/// The data on one line; text that is not JSON gets spaces instead of line breaks.
fn data(event: &Event) -> String {
    json(event).unwrap_or_else(|NotJson| event.data.replace(['\n', '\r'], " "))
}

fn document(event: &Event) -> Result<String, Failure> {
    let json = json(event);
    let raw: Option<&RawValue> = json.as_ref().ok().and_then(|text| serde_json::from_str(text).ok());
    let data = raw.map_or(Data::Text(&event.data), Data::Json);
    let document = Document { kind: &event.kind, id: event.id.as_deref(), data };
    serde_json::to_string(&document).map_err(|error| Failure::Output(error.into()))
}

fn json(event: &Event) -> Result<String, NotJson> {
    String::from_utf8(one_line(event.data.as_bytes())?).map_err(|_| NotJson)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(form: Form, data: &str, id: Option<&str>) -> String {
        let event = Event { kind: "block".to_owned(), data: data.to_owned(), id: id.map(str::to_owned) };
        let mut out = Vec::new();
        form.print(&event, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_event_is_a_line_with_every_digit() {
        // data, the line of its data, the line of the event
        let exact = "{\"price\":0.10000000000000000001}";
        let table = [
            (exact, "{\"price\":0.10000000000000000001}", "{\"price\":0.10000000000000000001}"),
            ("{\n\"a\":1\n}", "{\"a\":1}", "{\"a\":1}"),
            ("hello\nyou", "hello you", "\"hello\\nyou\""),
            ("", "", "\"\""),
            ("\"text\"", "\"text\"", "\"text\""),
        ];
        let plain = Form { events: false, terminal: false };
        let events = Form { events: true, terminal: false };
        for (data, line, value) in table {
            assert_eq!(print(plain, data, None), format!("{line}\n"));
            assert_eq!(
                print(events, data, Some("7")),
                format!("{{\"type\":\"block\",\"id\":\"7\",\"data\":{value}}}\n")
            );
            assert_eq!(print(events, data, None), format!("{{\"type\":\"block\",\"id\":null,\"data\":{value}}}\n"));
        }
    }

    #[test]
    fn control_characters_are_escaped_on_a_terminal() {
        let terminal = Form { events: false, terminal: true };
        assert_eq!(print(terminal, "a\u{1b}[2Jb\u{9b}", None), "a\u{fffd}[2Jb\u{fffd}\n");
    }
}
