//! The data reported so far by the JSON of a body: values, failures, and the lengths of texts.
//!
//! The values of a text count once the text has ended as JSON. If the body is cut off, the values of its last text
//! count too.

use crate::catalogue::amount::{Amount, Measures};
use crate::catalogue::json_report::{Combine, JsonReport};
use crate::catalogue::json_scanner::{ScannedValue, Verdict};
use crate::catalogue::outcome::BodyRead;
use crate::catalogue::report::ReportError;
use crate::catalogue::units::{Count, Counts};
use crate::money::credits::Credits;
use crate::money::decimal::DecimalError;

/// A value in the smallest unit of what is reported, if there is one.
type Value = Option<Result<u128, ReportError>>;

#[derive(Debug)]
pub(super) struct Findings {
    /// By place.
    values: Vec<Value>,
    /// The contribution of the current text at each place.
    here: Vec<Here>,
    failed: bool,
    fails_here: bool,
    /// By unit of [`JsonReport::delivered`].
    delivered: Vec<Length>,
    /// Bytes of texts.
    content: Length,
    has_content: bool,
    is_too_deep: bool,
}

#[derive(Debug, Default)]
struct Here {
    value: Value,
    name_repeats: bool,
}

/// A length in bytes that a count covers if it comes later.
#[derive(Debug, Clone, Copy, Default)]
struct Length {
    total: u64,
    /// The number of units that are not covered.
    open: u64,
    /// The same in the current text, and whether that has a count.
    total_here: u64,
    open_here: u64,
    covers_here: bool,
}

impl Findings {
    pub(super) fn new(report: &JsonReport) -> Self {
        Self {
            values: report.places.iter().map(|_| None).collect(),
            here: report.places.iter().map(|_| Here::default()).collect(),
            failed: false,
            fails_here: false,
            delivered: report.delivered.iter().flatten().map(|_| Length::default()).collect(),
            content: Length::default(),
            has_content: false,
            is_too_deep: false,
        }
    }

    /// Counts bytes of the current text.
    pub(super) fn count(&mut self, bytes: usize) {
        self.content.add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    /// The upstream reports that it failed.
    pub(super) const fn fail(&mut self) {
        self.fails_here = true;
    }

    /// Records the value at one of the report's pointers.
    pub(super) fn take(&mut self, report: &JsonReport, number: usize, found: ScannedValue<'_>) {
        let Some(other) = number.checked_sub(report.places.len()) else {
            return self.take_value(report, number, found);
        };
        match (other.checked_sub(report.failures), found) {
            (
                None,
                ScannedValue::Null | ScannedValue::Bool(false) | ScannedValue::Text(_, 0) | ScannedValue::RepeatedName,
            ) => {}
            (None, _) => self.fails_here = true,
            (Some(text), ScannedValue::Text(_, bytes)) => self.delivered[report.texts[text]].add(bytes),
            (Some(_), _) => {}
        }
    }

    fn take_value(&mut self, report: &JsonReport, place: usize, found: ScannedValue<'_>) {
        let pointer = report.places[place].as_str();
        let unreadable = |text: &str, problem| ReportError::unreadable(pointer, text, problem);
        let read = |start: &[u8], is_whole: bool| {
            let text = String::from_utf8_lossy(start);
            let parsed = if is_whole { report.measures.parse(&text) } else { Err(DecimalError::OutOfRange) };
            parsed.map_err(|problem| unreadable(&text, problem))
        };
        let value = match found {
            ScannedValue::Null => return,
            ScannedValue::RepeatedName => {
                self.here[place].name_repeats = true;
                return;
            }
            ScannedValue::Number(text) => read(text, true),
            ScannedValue::Text(start, bytes) => read(start, u64::try_from(start.len()) == Ok(bytes)),
            ScannedValue::Bool(value) => Err(unreadable(&value.to_string(), DecimalError::Malformed)),
            ScannedValue::Object => Err(unreadable("an object", DecimalError::Malformed)),
            ScannedValue::Array => Err(unreadable("an array", DecimalError::Malformed)),
        };
        report.combine.add(&mut self.here[place].value, value);
        self.content.cover();
        for (unit, length) in report.delivered.iter().flatten().zip(&mut self.delivered) {
            if unit.places.contains(&place) {
                length.cover();
            }
        }
    }

    /// Ends the current text.
    pub(super) fn end_text(&mut self, report: &JsonReport, verdict: Verdict) {
        let is_json = verdict == Verdict::Json;
        self.is_too_deep |= verdict == Verdict::TooDeep;
        self.merge(report, is_json, false);
    }

    /// The body was cut off in the current text.
    pub(super) fn cut(&mut self, report: &JsonReport) {
        self.merge(report, true, true);
    }

    fn merge(&mut self, report: &JsonReport, counts: bool, is_cut: bool) {
        self.has_content |= self.content.total_here > 0;
        for (place, here) in self.here.iter_mut().enumerate() {
            let Here { value, name_repeats } = std::mem::take(here);
            let Some(value) = value.filter(|_| counts) else { continue };
            let ambiguous = || ReportError::Ambiguous { location: report.places[place].as_str().to_owned() };
            let value = if name_repeats { Err(ambiguous()) } else { value };
            report.combine.add(&mut self.values[place], value);
        }
        let fails = std::mem::take(&mut self.fails_here);
        self.failed |= fails && counts;
        self.content.merge(counts, is_cut, fails && counts);
        for length in &mut self.delivered {
            length.merge(counts, is_cut, false);
        }
    }

    /// Whether anything was reported.
    fn is_empty(&self) -> bool {
        self.values.iter().all(Option::is_none)
    }

    /// Everything that was found. `verdict` is the verdict on a body that is one text.
    pub(super) fn read(self, report: &JsonReport, verdict: Option<Verdict>) -> BodyRead {
        let mut read = BodyRead {
            failed: self.failed,
            has_content: self.has_content,
            unreported_bytes: self.content.open,
            ..BodyRead::default()
        };
        read.error = match verdict {
            Some(Verdict::NotJson) => Some(ReportError::NotJson),
            Some(Verdict::TooDeep) => Some(ReportError::TooDeep),
            None if self.is_too_deep && self.is_empty() => Some(ReportError::TooDeep),
            _ => None,
        };
        read.has_content &= verdict != Some(Verdict::Empty);
        let value = |place: &usize| self.values[*place].clone().transpose();
        match &report.measures {
            Measures::Credits(place) => match value(place) {
                Ok(atoms) => read.credits = atoms.map(credits),
                Err(error) => read.error = read.error.or(Some(error)),
            },
            Measures::Counts(units) => {
                let mut counts = Vec::new();
                for (unit, amount) in units {
                    match count(amount, value) {
                        Ok(count) => counts.extend(count.map(|count| (unit.to_string(), count))),
                        Err(error) => read.error = read.error.or(Some(error)),
                    }
                }
                read.counts = Counts::from_iter(counts);
            }
        }
        let lengths = report.delivered.as_ref().map(|units| units.iter().zip(&self.delivered));
        read.delivered = lengths
            .map(|units| units.map(|(unit, length)| (unit.unit.clone(), length.total, length.open == 0)).collect());
        read
    }
}

fn count(
    amount: &Amount<usize>,
    value: impl Fn(&usize) -> Result<Option<u128>, ReportError>,
) -> Result<Option<Count>, ReportError> {
    amount.count(&mut |place| Ok(value(place)?.map(Count::from_billionths)))
}

fn credits(atoms: u128) -> Credits {
    i64::try_from(atoms).map_or(Credits::MAX, Credits::from_atoms)
}

impl Combine {
    fn add(self, known: &mut Value, value: Result<u128, ReportError>) {
        *known = Some(match (self, known.take(), value) {
            (_, None, value) | (Self::Last, _, value) => value,
            (Self::Max, Some(Ok(known)), Ok(value)) => Ok(known.max(value)),
            // Only readable values count.
            (Self::Max, Some(Ok(value)), Err(_)) | (Self::Max, Some(Err(_)), Ok(value)) => Ok(value),
            (Self::Sum, Some(Ok(known)), Ok(value)) => Ok(known.saturating_add(value)),
            (Self::Max | Self::Sum, Some(Err(error)), _) | (Self::Sum, Some(Ok(_)), Err(error)) => Err(error),
        });
    }
}

impl Length {
    const fn add(&mut self, bytes: u64) {
        self.total_here = self.total_here.saturating_add(bytes);
        self.open_here = self.open_here.saturating_add(bytes);
    }

    /// There is a count.
    const fn cover(&mut self) {
        self.open_here = 0;
        self.covers_here = true;
    }

    /// Ends a text. A text whose counts are ignored covers nothing; a failure delivers nothing. A count covers the
    /// whole of a complete text.
    const fn merge(&mut self, counts: bool, is_cut: bool, is_failure: bool) {
        let Self { total_here, open_here, covers_here, total, open } = *self;
        let covers = covers_here && counts;
        let open = match (covers, is_failure) {
            (true, _) if is_cut => open_here,
            (true, _) => 0,
            (false, true) => open,
            (false, false) => open.saturating_add(total_here),
        };
        let total = if is_failure { total } else { total.saturating_add(total_here) };
        *self = Self { total, open, total_here: 0, open_here: 0, covers_here: false };
    }
}
