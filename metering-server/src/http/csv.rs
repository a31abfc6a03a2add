//! Replies with a CSV file (RFC 4180), for spreadsheets.
//!
//! A spreadsheet reads a cell that begins with `=`, `+`, `-` or `@` as a formula. Route names and descriptions are
//! untrusted, so such a text gets an apostrophe in front; amounts are numbers and stay unchanged.

use std::borrow::Cow;

use http::{HeaderValue, StatusCode};

use crate::http::Problem;
use crate::http::reply::{Reply, bytes, with_headers};

/// A cell of a row.
pub(crate) enum Cell<'a> {
    /// A number or a date of the service itself.
    Value(String),
    /// A text that someone else may have chosen.
    Text(&'a str),
}

/// A file to download, with its name and `next`: the URL of the rows that follow, if any.
pub(crate) fn csv<'a, const N: usize>(
    name: &str,
    columns: [&str; N],
    rows: impl Iterator<Item = [Cell<'a>; N]>,
    next: Option<String>,
) -> Reply {
    let body = match write(columns, rows) {
        Ok(body) => body,
        Err(error) => {
            tracing::error!(%error, "could not write a CSV file");
            return Problem::internal().into_reply();
        }
    };
    let reply = bytes(StatusCode::OK, HeaderValue::from_static("text/csv; charset=utf-8; header=present"), body.into());
    let mut headers = vec![("content-disposition", format!("attachment; filename=\"{name}.csv\""))];
    headers.extend(next.map(|url| ("link", format!("<{url}>; rel=\"next\""))));
    with_headers(reply, headers)
}

fn write<'a, const N: usize>(
    columns: [&str; N],
    rows: impl Iterator<Item = [Cell<'a>; N]>,
) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    writer.write_record(columns)?;
    for row in rows {
        let cells = row.map(|cell| match cell {
            Cell::Value(value) => Cow::Owned(value),
            Cell::Text(text) => inert(text),
        });
        writer.write_record(cells.iter().map(|cell| cell.as_bytes()))?;
    }
    writer.into_inner().map_err(|error| error.to_string().into())
}

/// The text, so that spreadsheets do not read it as a formula.
fn inert(text: &str) -> Cow<'_, str> {
    match text.chars().next() {
        Some('=' | '+' | '-' | '@' | '\t' | '\r' | '\n' | '＝' | '＋' | '－' | '＠') => {
            Cow::Owned(format!("'{text}"))
        }
        _ => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let rows = [[Cell::Text(text), Cell::Value("-0.5".to_owned())]];
        String::from_utf8(write(["text", "credits"], rows.into_iter()).unwrap()).unwrap()
    }

    #[test]
    fn texts_never_become_formulas() {
        let table = [
            ("/price", "/price"),
            ("=1+1", "'=1+1"),
            ("+44", "'+44"),
            ("-x", "'-x"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("＝1", "'＝1"),
            ("a=1", "a=1"),
            ("", ""),
        ];
        for (text, cell) in table {
            assert_eq!(written(text), format!("text,credits\r\n{cell},-0.5\r\n"), "{text}");
        }
    }

    #[test]
    fn separators_are_quoted() {
        assert_eq!(written("a,\"b\"\r\nc"), "text,credits\r\n\"a,\"\"b\"\"\r\nc\",-0.5\r\n");
    }
}
