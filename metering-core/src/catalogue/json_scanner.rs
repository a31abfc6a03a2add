//! Reads a JSON text as it arrives and finds the values at wanted pointers, in memory bounded by the depth of the text
//! and the number of pointers, however large the text or a string in it is.
//!
//! No crate does this: those that read JSON as it arrives (`actson`, `json-event-parser`) keep each string whole.

mod scanned_value;
mod targets;
mod text;

pub(super) use scanned_value::ScannedValue;
pub(super) use targets::Targets;

use targets::Token;
use text::Text;

/// Deeper texts are not read. Bounds the memory of a scanner.
pub(super) const DEPTH_MAX: usize = 128;

/// The type of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing but white space.
    Empty,
    Json,
    NotJson,
    /// It may be JSON, but is nested too deep.
    TooDeep,
}

/// Reads one text after the other. Bytes outside ASCII are not checked: it is for texts that are only looked into.
#[derive(Debug)]
pub(super) struct Scanner {
    state: State,
    /// The objects and arrays that are open.
    frames: Vec<Frame>,
    /// The nodes of the targets at the current objects and arrays, innermost last.
    nodes: Vec<usize>,
    /// Child nodes whose names have been seen in these, those of the innermost last.
    named: Vec<usize>,
    /// The nodes of the targets that the next value is at.
    here: Vec<usize>,
    text: Text,
    is_array: bool,
}

#[derive(Debug)]
struct Frame {
    is_array: bool,
    /// Where its part of [`Scanner::nodes`] begins.
    nodes: usize,
    /// Where its part of [`Scanner::named`] begins.
    named: usize,
    /// The position of the current element.
    index: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Value,
    FirstElementOrEnd,
    FirstNameOrEnd,
    Name,
    Colon,
    Text {
        is_name: bool,
    },
    Number(Number),
    /// In `null`, `true` or `false`, whose rest this is.
    Word(&'static [u8], ScannedValue<'static>),
    AfterValue,
    Stopped(Verdict),
}

/// The parts of a number: RFC 8259, section 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl Scanner {
    pub(super) fn new() -> Self {
        Self {
            state: State::Start,
            frames: Vec::new(),
            nodes: Vec::new(),
            named: Vec::new(),
            here: vec![Targets::ROOT],
            text: Text::default(),
            is_array: false,
        }
    }

    /// Begins the next text. Its memory is reused from the last one.
    pub(super) fn restart(&mut self) {
        self.state = State::Start;
        self.close_all();
        self.here.clear();
        self.here.push(Targets::ROOT);
        self.is_array = false;
    }

    /// Whether the text is an array.
    pub(super) const fn is_array(&self) -> bool {
        self.is_array
    }

    /// Reads the next bytes and passes on the values at the pointers.
    pub(super) fn push(&mut self, targets: &Targets, bytes: &[u8], take: &mut impl FnMut(usize, ScannedValue<'_>)) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            rest = match self.state {
                State::Stopped(_) => return,
                State::Text { is_name } => self.read_text(is_name, rest, targets, take),
                State::Number(part) => self.read_number(part, rest, targets, take),
                State::Word(word, found) => match word.split_first() {
                    Some((next, left)) if *next == byte => {
                        self.state = State::Word(left, found);
                        if left.is_empty() {
                            self.end_scalar(targets, found, take);
                        }
                        after
                    }
                    _ => return self.stop(Verdict::NotJson),
                },
                _ if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') => after,
                _ => {
                    self.read_token(byte, targets, take);
                    after
                }
            };
        }
    }

    /// Ends the text.
    pub(super) fn finish(&mut self, targets: &Targets, take: &mut impl FnMut(usize, ScannedValue<'_>)) -> Verdict {
        if matches!(self.state, State::Number(part) if part.may_end()) {
            self.end_number(targets, take);
        }
        match self.state {
            State::Start => Verdict::Empty,
            State::AfterValue if self.frames.is_empty() => Verdict::Json,
            State::Stopped(verdict) => verdict,
            _ => Verdict::NotJson,
        }
    }

    /// Passes on an unterminated string at the end of a truncated text.
    pub(super) fn cut(&self, targets: &Targets, take: &mut impl FnMut(usize, ScannedValue<'_>)) {
        if self.state == (State::Text { is_name: false }) {
            targets.at(&self.here, ScannedValue::Text(self.text.start(), self.text.bytes()), take);
        }
    }

    fn stop(&mut self, verdict: Verdict) {
        self.state = State::Stopped(verdict);
        self.close_all();
    }

    fn close_all(&mut self) {
        self.frames.clear();
        self.nodes.clear();
        self.named.clear();
    }

    fn read_token(&mut self, byte: u8, targets: &Targets, take: &mut impl FnMut(usize, ScannedValue<'_>)) {
        match (self.state, byte) {
            (State::FirstElementOrEnd, b']') | (State::FirstNameOrEnd, b'}') => self.close(),
            (State::FirstElementOrEnd | State::Start | State::Value, _) => self.begin_value(byte, targets, take),
            (State::FirstNameOrEnd | State::Name, b'"') => {
                let wanted = self.frames.last().is_some_and(|frame| frame.nodes < self.nodes.len());
                self.text.begin(wanted);
                self.state = State::Text { is_name: true };
            }
            (State::Colon, b':') => self.state = State::Value,
            (State::AfterValue, _) => match (self.frames.last_mut(), byte) {
                (Some(frame), b',') if frame.is_array => {
                    frame.index += 1;
                    self.enter_element(targets);
                    self.state = State::Value;
                }
                (Some(_), b',') => self.state = State::Name,
                (Some(frame), b']') if frame.is_array => self.close(),
                (Some(frame), b'}') if !frame.is_array => self.close(),
                _ => self.stop(Verdict::NotJson),
            },
            _ => self.stop(Verdict::NotJson),
        }
    }

    fn begin_value(&mut self, byte: u8, targets: &Targets, take: &mut impl FnMut(usize, ScannedValue<'_>)) {
        self.is_array |= self.state == State::Start && byte == b'[';
        self.state = match byte {
            b'{' | b'[' => return self.open(byte == b'[', targets, take),
            b'"' => State::Text { is_name: false },
            b'-' => State::Number(Number::Minus),
            b'0' => State::Number(Number::Zero),
            b'1'..=b'9' => State::Number(Number::Whole),
            b'n' => State::Word(b"ull", ScannedValue::Null),
            b't' => State::Word(b"rue", ScannedValue::Bool(true)),
            b'f' => State::Word(b"alse", ScannedValue::Bool(false)),
            _ => return self.stop(Verdict::NotJson),
        };
        self.text.begin(!self.here.is_empty());
        if matches!(self.state, State::Number(_)) {
            self.text.extend(&[byte]);
        }
    }

    fn open(&mut self, is_array: bool, targets: &Targets, take: &mut impl FnMut(usize, ScannedValue<'_>)) {
        if self.frames.len() >= DEPTH_MAX {
            return self.stop(Verdict::TooDeep);
        }
        targets.at(&self.here, if is_array { ScannedValue::Array } else { ScannedValue::Object }, take);
        self.frames.push(Frame { is_array, nodes: self.nodes.len(), named: self.named.len(), index: 0 });
        self.nodes.append(&mut self.here);
        if is_array {
            self.enter_element(targets);
        }
        self.state = if is_array { State::FirstElementOrEnd } else { State::FirstNameOrEnd };
    }

    fn close(&mut self) {
        if let Some(frame) = self.frames.pop() {
            self.nodes.truncate(frame.nodes);
            self.named.truncate(frame.named);
        }
        self.state = State::AfterValue;
    }

    /// Finds the nodes of the next element.
    fn enter_element(&mut self, targets: &Targets) {
        self.here.clear();
        let Some(frame) = self.frames.last() else { return };
        for edge in self.nodes[frame.nodes..].iter().flat_map(|node| targets.edges(*node)) {
            if edge.token == Token::Each || edge.index == Some(frame.index) {
                self.here.push(edge.to);
            }
        }
    }

    /// Finds the nodes of the next member.
    fn enter_member(&mut self, targets: &Targets, take: &mut impl FnMut(usize, ScannedValue<'_>)) {
        self.here.clear();
        let Some(frame) = self.frames.last() else { return };
        let name = self.text.whole();
        for edge in self.nodes[frame.nodes..].iter().flat_map(|node| targets.edges(*node)) {
            match &edge.token {
                Token::Each => self.here.push(edge.to),
                Token::Name(wanted) if name == Some(wanted.as_bytes()) => {
                    if self.named[frame.named..].contains(&edge.to) {
                        targets.below(edge.to, take);
                    } else {
                        self.named.push(edge.to);
                    }
                    self.here.push(edge.to);
                }
                Token::Name(_) => {}
            }
        }
    }

    /// Reads a string up to its end, or to the end of the bytes.
    fn read_text<'b>(
        &mut self,
        is_name: bool,
        bytes: &'b [u8],
        targets: &Targets,
        take: &mut impl FnMut(usize, ScannedValue<'_>),
    ) -> &'b [u8] {
        match self.text.read(bytes) {
            text::Step::More => &[],
            text::Step::Invalid => {
                self.stop(Verdict::NotJson);
                &[]
            }
            text::Step::End(rest) => {
                if is_name {
                    self.enter_member(targets, take);
                    self.state = State::Colon;
                } else {
                    targets.at(&self.here, ScannedValue::Text(self.text.start(), self.text.bytes()), take);
                    self.state = State::AfterValue;
                }
                rest
            }
        }
    }

    /// Reads a number up to its end, or to the end of the bytes.
    fn read_number<'b>(
        &mut self,
        mut part: Number,
        bytes: &'b [u8],
        targets: &Targets,
        take: &mut impl FnMut(usize, ScannedValue<'_>),
    ) -> &'b [u8] {
        let mut length = 0;
        while let Some(next) = bytes.get(length).and_then(|byte| part.next(*byte)) {
            part = next;
            length += 1;
        }
        self.text.extend(&bytes[..length]);
        if length == bytes.len() {
            self.state = State::Number(part);
        } else if part.may_end() {
            self.end_number(targets, take);
        } else {
            self.stop(Verdict::NotJson);
            return &[];
        }
        &bytes[length..]
    }

    fn end_number(&mut self, targets: &Targets, take: &mut impl FnMut(usize, ScannedValue<'_>)) {
        targets.at(&self.here, ScannedValue::Number(self.text.start()), take);
        self.state = State::AfterValue;
    }

    fn end_scalar(
        &mut self,
        targets: &Targets,
        found: ScannedValue<'_>,
        take: &mut impl FnMut(usize, ScannedValue<'_>),
    ) {
        targets.at(&self.here, found, take);
        self.state = State::AfterValue;
    }
}

impl Number {
    /// The part that this byte belongs to; `None` when it is not part of the number.
    const fn next(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Minus, b'0') => Some(Self::Zero),
            (Self::Minus, b'1'..=b'9') | (Self::Whole, b'0'..=b'9') => Some(Self::Whole),
            (Self::Zero | Self::Whole, b'.') => Some(Self::Point),
            (Self::Point | Self::Fraction, b'0'..=b'9') => Some(Self::Fraction),
            (Self::Zero | Self::Whole | Self::Fraction, b'e' | b'E') => Some(Self::Exponent),
            (Self::Exponent, b'+' | b'-') => Some(Self::ExponentSign),
            (Self::Exponent | Self::ExponentSign | Self::ExponentDigits, b'0'..=b'9') => Some(Self::ExponentDigits),
            _ => None,
        }
    }

    const fn may_end(self) -> bool {
        matches!(self, Self::Zero | Self::Whole | Self::Fraction | Self::ExponentDigits)
    }
}

#[cfg(test)]
mod tests;
