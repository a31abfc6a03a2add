//! The string, name or number that a scanner reads: its start is kept, and the rest is only counted.

use crate::catalogue::byte_search::position;

/// The number of bytes kept: more than the length of any pointer's token or readable number.
const KEPT_BYTES: usize = 257;

#[derive(Debug, Default)]
pub(super) struct Text {
    start: Vec<u8>,
    /// Its full length, decoded.
    bytes: u64,
    is_wanted: bool,
    escape: Escape,
    /// The first half of a surrogate pair, whose second half may follow.
    high: Option<u16>,
}

#[derive(Debug, Clone, Copy, Default)]
enum Escape {
    #[default]
    None,
    Begun,
    /// `\u` and this many digits, with this value so far.
    Unicode(u8, u16),
}

/// The result of reading the bytes of a string.
pub(super) enum Step<'b> {
    /// The string continues.
    More,
    /// It has ended; these bytes come after it.
    End(&'b [u8]),
    Invalid,
}

impl Text {
    /// Begins a new text. Unwanted values are only checked.
    pub(super) fn begin(&mut self, is_wanted: bool) {
        self.start.clear();
        (self.bytes, self.is_wanted, self.escape, self.high) = (0, is_wanted, Escape::None, None);
    }

    pub(super) fn start(&self) -> &[u8] {
        &self.start
    }

    /// The whole string; `None` if it is too long.
    pub(super) fn whole(&self) -> Option<&[u8]> {
        (u64::try_from(self.start.len()) == Ok(self.bytes)).then_some(&self.start)
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads a string after its quotation mark.
    pub(super) fn read<'b>(&mut self, bytes: &'b [u8]) -> Step<'b> {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            match self.escape {
                Escape::Begun => {
                    if !self.read_escape(byte) {
                        return Step::Invalid;
                    }
                    rest = after;
                }
                Escape::Unicode(digits, value) => {
                    let Some(digit) = char::from(byte).to_digit(16).and_then(|digit| u16::try_from(digit).ok()) else {
                        return Step::Invalid;
                    };
                    let (digits, value) = (digits + 1, (value << 4) | digit);
                    self.escape = Escape::Unicode(digits, value);
                    if digits == 4 {
                        self.escape = Escape::None;
                        self.push_unit(value);
                    }
                    rest = after;
                }
                Escape::None => {
                    let is_special = |byte: u8| (byte < 0x20) | (byte == b'"') | (byte == b'\\');
                    let length = position(rest, is_special).unwrap_or(rest.len());
                    if length > 0 {
                        self.end_pair();
                        self.extend(&rest[..length]);
                    }
                    match rest.get(length) {
                        None => return Step::More,
                        Some(b'"') => {
                            self.end_pair();
                            return Step::End(&rest[length + 1..]);
                        }
                        Some(b'\\') => self.escape = Escape::Begun,
                        Some(_) => return Step::Invalid,
                    }
                    rest = &rest[length + 1..];
                }
            }
        }
        Step::More
    }

    /// Reads the letter of an escape.
    fn read_escape(&mut self, letter: u8) -> bool {
        self.escape = Escape::None;
        let byte = match letter {
            b'"' | b'\\' | b'/' => letter,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                self.escape = Escape::Unicode(0, 0);
                return true;
            }
            _ => return false,
        };
        self.end_pair();
        self.extend(&[byte]);
        true
    }

    /// Adds a unit of UTF-16. Half of a surrogate pair is read as a replacement character.
    fn push_unit(&mut self, unit: u16) {
        match (self.high.take(), unit) {
            (Some(high), 0xdc00..=0xdfff) => self.push_units(&[high, unit]),
            (high, 0xd800..=0xdbff) => {
                self.push_units(high.as_slice());
                self.high = Some(unit);
            }
            (high, _) => {
                self.push_units(high.as_slice());
                self.push_units(&[unit]);
            }
        }
    }

    /// Ends a pair whose second half is missing.
    fn end_pair(&mut self) {
        if let Some(high) = self.high.take() {
            self.push_units(&[high]);
        }
    }

    fn push_units(&mut self, units: &[u16]) {
        for letter in char::decode_utf16(units.iter().copied()) {
            let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.extend(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    /// Adds decoded bytes.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if self.is_wanted {
            let room = (KEPT_BYTES - self.start.len()).min(bytes.len());
            self.start.extend_from_slice(&bytes[..room]);
        }
    }
}
