//! Reads the cost that a response's body reports, while the body passes through.

use std::sync::Arc;

use crate::catalogue::event_data::{Framing, Piece, Splitter};
use crate::catalogue::findings::Findings;
use crate::catalogue::json_report::JsonReport;
use crate::catalogue::json_scanner::{ScannedValue, Scanner};
use crate::catalogue::outcome::{BodyEnd, BodyRead, Ended, Settlement};
use crate::catalogue::report::{ReportError, Source};
use crate::catalogue::usage_price::UsagePrice;
use crate::money::credits::Credits;

/// Media types with a JSON text per line.
const LINE_TYPES: [&str; 5] = [
    "application/x-ndjson",
    "application/ndjson",
    "application/stream+json",
    "application/jsonl",
    "application/x-jsonlines",
];

/// Reads the cost that a response's body reports. Feed it the body as it arrives. Its memory does not grow with the
/// body.
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

#[derive(Debug)]
enum State {
    /// How many bytes there were so far.
    Bytes(u64),
    Json(Box<Json>),
}

/// The JSON of a body, and the data that it has reported so far.
#[derive(Debug)]
struct Json {
    framing: Framing,
    splitter: Splitter,
    scanner: Scanner,
    findings: Findings,
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
            Source::Json(report) => State::Json(Box::new(Json::new(report, framing(content_type)))),
        };
        Some(ReportReader { price: Arc::clone(self), state })
    }
}

/// How a body with this content type is divided.
fn framing(content_type: Option<&str>) -> Framing {
    let media_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let is = |name: &&str| media_type.eq_ignore_ascii_case(name);
    if is(&"text/event-stream") {
        return Framing::Events;
    }
    if LINE_TYPES.iter().any(is) { Framing::Lines } else { Framing::Whole }
}

impl Json {
    fn new(report: &JsonReport, framing: Framing) -> Self {
        let (splitter, scanner) = (Splitter::new(framing), Scanner::new());
        Self { framing, splitter, scanner, findings: Findings::new(report) }
    }

    fn push(&mut self, report: &JsonReport, bytes: &[u8]) {
        let Self { splitter, scanner, findings, .. } = self;
        splitter.push(bytes, &mut |piece| read(report, scanner, findings, piece));
    }

    /// Ends the body.
    fn finish(self, report: &JsonReport, end: BodyEnd) -> BodyRead {
        let Self { framing, mut splitter, mut scanner, mut findings } = self;
        if end == BodyEnd::Complete && framing != Framing::Whole {
            splitter.finish(&mut |piece| read(report, &mut scanner, &mut findings, piece));
            return findings.read(report, None);
        }
        let mut take = |number: usize, found: ScannedValue<'_>| findings.take(report, number, found);
        if end == BodyEnd::Complete {
            let verdict = scanner.finish(&report.targets, &mut take);
            findings.end_text(report, verdict);
            return findings.read(report, Some(verdict));
        }
        scanner.cut(&report.targets, &mut take);
        findings.cut(report);
        findings.read(report, None)
    }
}

/// Reads a part of a body's JSON.
fn read(report: &JsonReport, scanner: &mut Scanner, findings: &mut Findings, piece: Piece<'_>) {
    match piece {
        Piece::Data(bytes) => {
            findings.count(bytes.len());
            scanner.push(&report.targets, bytes, &mut |number, found| findings.take(report, number, found));
        }
        Piece::ErrorEvent if report.has_error_events => findings.fail(),
        Piece::ErrorEvent => {}
        Piece::End => {
            let take = &mut |number: usize, found: ScannedValue<'_>| findings.take(report, number, found);
            let verdict = scanner.finish(&report.targets, take);
            scanner.restart();
            findings.end_text(report, verdict);
        }
    }
}

impl ReportReader {
    /// Reads the next bytes of the body.
    pub fn push(&mut self, data: &[u8]) {
        match (&mut self.state, self.price.json_report()) {
            (State::Bytes(bytes), _) => *bytes = bytes.saturating_add(u64::try_from(data.len()).unwrap_or(u64::MAX)),
            (State::Json(json), Some(report)) => json.push(report, data),
            (State::Json(_), None) => {}
        }
    }

    /// The cost, once the body is complete; `None` when it has no report.
    ///
    /// # Errors
    /// When the body is not JSON or too deep, or a reported value is not a number of zero or more.
    pub fn finish(self) -> Result<Option<Credits>, ReportError> {
        let price = self.price;
        match (self.state, price.json_report()) {
            (State::Bytes(bytes), _) => Ok(Some(price.cost_of_bytes(bytes))),
            (State::Json(json), Some(report)) => price.reported(&json.finish(report, BodyEnd::Complete)),
            (State::Json(_), None) => Ok(None),
        }
    }

    /// How to settle, once the body has ended.
    ///
    /// ```
    /// use metering_core::Catalogue;
    /// use metering_core::catalogue::{BodyEnd, Ended, Settlement};
    ///
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/chat", "method": "POST", "metered": true, "price": {
    ///         "max": "0.5", "units": {"tokens": "0.001"}, "report": {"json": {"tokens": "/usage/total_tokens"}}}}]}"#,
    /// )?;
    /// let price = catalogue.routes()[0].usage_price().ok_or("no price by usage")?;
    /// let mut reader = price.body_reader(Some("text/event-stream")).ok_or("the report is in the body")?;
    /// reader.push(b"data: {\"error\": {\"message\": \"overloaded\"}}\n\n");
    /// let ended = Ended { body: BodyEnd::Complete, is_error: false, held: price.max(), request_bytes: 100 };
    /// assert_eq!(reader.settlement(&ended), Settlement::Nothing);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn settlement(self, ended: &Ended) -> Settlement {
        self.settlement_and_tokens(ended).0
    }

    /// Like [`ReportReader::settlement`], with the tokens that the request used; `None` if the complete report did not
    /// include them.
    #[must_use]
    pub fn settlement_and_tokens(self, ended: &Ended) -> (Settlement, Option<u32>) {
        let price = self.price;
        match (self.state, price.json_report()) {
            (State::Bytes(0), _) if ended.body == BodyEnd::Broken => (Settlement::Nothing, None),
            (State::Bytes(bytes), _) => (Settlement::Reported(price.cost_of_bytes(bytes)), None),
            (State::Json(json), Some(report)) => {
                let read = json.finish(report, ended.body);
                let settlement = price.settlement(&read, ended);
                let is_reported = matches!(settlement, Settlement::Reported(_));
                (settlement, price.used_tokens(&read.counts).filter(|_| is_reported))
            }
            (State::Json(_), None) => (Settlement::Missing(None), None),
        }
    }

    /// Whether the cost is only known at the end of the body. Otherwise the body is a stream, or counted by its bytes.
    #[must_use]
    pub const fn reads_whole_body(&self) -> bool {
        matches!(&self.state, State::Json(json) if matches!(json.framing, Framing::Whole))
    }

    /// Whether the body is a JSON array, from the part that was read: some services stream one, element by element.
    #[must_use]
    pub const fn reads_array(&self) -> bool {
        matches!(&self.state, State::Json(json) if json.scanner.is_array())
    }

    /// Whether it counts the bytes of the body, so the cost of the part that it was fed is always known. Otherwise the
    /// report is in the body's JSON, which must not be encoded.
    #[must_use]
    pub const fn counts_bytes(&self) -> bool {
        matches!(self.state, State::Bytes(_))
    }
}

#[cfg(test)]
mod tests;
