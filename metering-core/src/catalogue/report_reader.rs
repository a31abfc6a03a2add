//! Reads the cost that a response's body reports, while the body passes through.

use std::sync::Arc;

use crate::catalogue::event_data::{EVENT_BYTES_MAX, Framing, Splitter};
use crate::catalogue::pointer::{self, Lookup, Names, Pointer};
use crate::catalogue::report::{Measures, ReportError, Source, read_count, read_credits};
use crate::catalogue::units::{Count, Counts};
use crate::catalogue::usage_price::UsagePrice;
use crate::money::credits::Credits;

/// The largest JSON body that is read, in bytes. It is kept in memory until the response ends.
const BODY_BYTES_MAX: usize = 8 << 20;

/// Media types with a JSON text per line.
const LINE_TYPES: [&str; 5] = [
    "application/x-ndjson",
    "application/ndjson",
    "application/stream+json",
    "application/jsonl",
    "application/x-jsonlines",
];

/// Reads the cost that a response's body reports. Feed it the body as it arrives.
///
/// In server-sent events and in JSON lines, the last value that is not `null` counts, for each unit.
///
/// ```
/// use metering_core::Catalogue;
///
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/chat", "method": "POST", "metered": true, "price": {
///         "max": "0.5", "units": {"tokens": "0.001"}, "report": {"json": {"tokens": "/usage/total_tokens"}}}}]}"#,
/// )?;
/// let price = catalogue.routes()[0].usage_price().ok_or("no price by usage")?;
/// let mut reader = price.body_reader(Some("text/event-stream")).ok_or("the report is in the body")?;
/// reader.push(b"data: {\"text\": \"Hi\", \"usage\": null}\n\ndata: {\"usage\": {\"total_to");
/// reader.push(b"kens\": 12}}\n\ndata: [DONE]\n\n");
/// assert_eq!(reader.finish()?, Some("0.012".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ReportReader {
    price: Arc<UsagePrice>,
    state: State,
}

/// A measure's newest value, if there was one.
type Newest<T> = Option<Result<T, ReportError>>;

#[derive(Debug)]
enum State {
    /// How many bytes there were so far.
    Bytes(u64),
    /// A JSON body, as far as it has arrived.
    Body(Vec<u8>),
    /// The body cannot be read, and is no longer kept.
    Unusable(ReportError),
    /// Events or lines, and what they reported so far.
    Stream(Splitter, Findings),
}

/// What was reported so far.
#[derive(Debug)]
enum Findings {
    Credits(Newest<Credits>),
    /// One for each place of the report.
    Counts(Vec<Newest<Count>>),
}

impl UsagePrice {
    /// A reader for the body of a response with this content type. `None` when the report is not in the body.
    ///
    /// [`ReportReader`] has an example.
    #[must_use]
    pub fn body_reader(self: &Arc<Self>, content_type: Option<&str>) -> Option<ReportReader> {
        let state = match &self.report().source {
            Source::Headers(_) | Source::Unknown => return None,
            Source::Bytes(_) => State::Bytes(0),
            Source::Json(measures) => match framing(content_type) {
                Some(framing) => State::Stream(Splitter::new(framing), Findings::new(measures)),
                None => State::Body(Vec::new()),
            },
        };
        Some(ReportReader { price: Arc::clone(self), state })
    }
}

/// How a body with this content type is divided; `None` when it is one text.
fn framing(content_type: Option<&str>) -> Option<Framing> {
    let media_type = content_type?.split(';').next().unwrap_or_default().trim();
    let is = |name: &&str| media_type.eq_ignore_ascii_case(name);
    if is(&"text/event-stream") {
        return Some(Framing::Events);
    }
    LINE_TYPES.iter().any(is).then_some(Framing::Lines)
}

impl ReportReader {
    /// Reads the next bytes of the body.
    pub fn push(&mut self, data: &[u8]) {
        let measures = self.price.json_measures();
        match &mut self.state {
            State::Bytes(bytes) => *bytes = bytes.saturating_add(u64::try_from(data.len()).unwrap_or(u64::MAX)),
            State::Body(body) => {
                let data = if body.is_empty() { data.trim_ascii_start() } else { data };
                if body.is_empty() && data.first().is_some_and(|first| !begins_json(*first)) {
                    self.state = State::Unusable(ReportError::NotJson);
                } else if body.len() + data.len() > BODY_BYTES_MAX {
                    self.state = State::Unusable(ReportError::TooLarge { bytes_max: BODY_BYTES_MAX });
                } else {
                    body.extend_from_slice(data);
                }
            }
            State::Unusable(_) => {}
            State::Stream(splitter, findings) => {
                splitter.push(data, &mut |text| findings.read(measures, text));
            }
        }
    }

    /// The cost, once the body is complete; `None` when it has no report.
    ///
    /// # Errors
    /// When the body is not JSON, a reported value is not a number of zero or more, or the report is not within the
    /// bytes that are read.
    pub fn finish(self) -> Result<Option<Credits>, ReportError> {
        let measures = self.price.json_measures();
        let findings = match self.state {
            State::Bytes(bytes) => return Ok(Some(self.price.cost_of_bytes(bytes))),
            State::Unusable(error) => return Err(error),
            State::Body(body) if body.is_empty() => return Ok(None),
            State::Body(body) => {
                let text = std::str::from_utf8(&body).map_err(|_| ReportError::NotJson)?;
                let text = text.strip_prefix('\u{feff}').unwrap_or(text);
                let Some(measures) = measures else { return Ok(None) };
                let mut findings = Findings::new(measures);
                findings.read_json(measures, text).map_err(|_| ReportError::NotJson)?;
                findings
            }
            State::Stream(mut splitter, mut findings) => {
                splitter.finish(&mut |text| findings.read(measures, text));
                if findings.is_empty() && splitter.has_skipped() {
                    return Err(ReportError::TooLarge { bytes_max: EVENT_BYTES_MAX });
                }
                findings
            }
        };
        match findings {
            Findings::Credits(credits) => Ok(credits.transpose()?.map(|credits| self.price.cost_of_credits(credits))),
            Findings::Counts(counts) => {
                let units = measures.map(units).unwrap_or_default();
                // Backwards, so that the first place decides.
                let found = units.into_iter().zip(counts).rev().filter_map(|(unit, count)| Some((unit, count?)));
                let counts = found.map(|(unit, count)| Ok((unit, count?))).collect::<Result<Counts, ReportError>>()?;
                Ok((!counts.is_empty()).then(|| self.price.cost_of_known(&counts)))
            }
        }
    }

    /// Whether the cost is only known at the end of the body, which is kept in memory until then. Otherwise the body is
    /// read as it passes.
    #[must_use]
    pub const fn reads_whole_body(&self) -> bool {
        matches!(self.state, State::Body(_) | State::Unusable(_))
    }
}

impl ReportReader {
    /// Whether it counts the bytes of the body, so that the cost of what it was fed is known at any time. Otherwise the
    /// report is in the body's JSON, which must not be encoded.
    #[must_use]
    pub const fn counts_bytes(&self) -> bool {
        matches!(self.state, State::Bytes(_))
    }

    /// Whether the rest of the body makes no difference: the body is too large, or is not JSON.
    /// [`finish`](Self::finish) says which.
    #[must_use]
    pub const fn has_given_up(&self) -> bool {
        matches!(self.state, State::Unusable(_))
    }
}

/// Whether a JSON text may begin with this byte, or with a byte order mark that does.
const fn begins_json(byte: u8) -> bool {
    matches!(byte, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n' | 0xef)
}

fn units(measures: &Measures<Pointer>) -> Vec<&str> {
    match measures {
        Measures::Credits(_) => Vec::new(),
        Measures::Counts(units) => units.iter().map(|(unit, _)| &**unit).collect(),
    }
}

fn pointers(measures: &Measures<Pointer>) -> Vec<&Pointer> {
    match measures {
        Measures::Credits(pointer) => vec![pointer],
        Measures::Counts(units) => units.iter().map(|(_, pointer)| pointer).collect(),
    }
}

impl Findings {
    fn new(measures: &Measures<Pointer>) -> Self {
        match measures {
            Measures::Credits(_) => Self::Credits(None),
            Measures::Counts(units) => Self::Counts(units.iter().map(|_| None).collect()),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Credits(credits) => credits.is_none(),
            Self::Counts(counts) => counts.iter().all(Option::is_none),
        }
    }

    /// Reads an event or a line. One that is not JSON, such as `[DONE]`, is ignored.
    fn read(&mut self, measures: Option<&Measures<Pointer>>, text: &str) {
        if let Some(measures) = measures
            && pointers(measures).iter().any(|pointer| pointer.may_be_in(text))
        {
            let _ = self.read_json(measures, text);
        }
    }

    fn read_json(&mut self, measures: &Measures<Pointer>, json: &str) -> Result<(), serde_json::Error> {
        let pointers = pointers(measures);
        let found = pointer::look_up(json, &pointers, Names::Exact)?;
        for (index, (pointer, lookup)) in pointers.into_iter().zip(found).enumerate() {
            let ambiguous = || ReportError::Ambiguous { location: pointer.as_str().to_owned() };
            match (&mut *self, lookup) {
                (_, Lookup::Nothing) => {}
                (Self::Credits(newest), Lookup::Value(value)) => *newest = Some(read_credits(pointer, value)),
                (Self::Credits(newest), Lookup::Ambiguous) => *newest = Some(Err(ambiguous())),
                (Self::Counts(newest), Lookup::Value(value)) => newest[index] = Some(read_count(pointer, value)),
                (Self::Counts(newest), Lookup::Ambiguous) => newest[index] = Some(Err(ambiguous())),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
