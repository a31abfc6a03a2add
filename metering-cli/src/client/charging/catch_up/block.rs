//! A block as the service sent it: its number is parsed, its text is kept.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::client::session::json_line::{NotJson, one_line};

/// A block's height.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct BlockNumber(u64);

/// A block's document on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) number: BlockNumber,
    /// The service's JSON, with every digit of its numbers, and a line break.
    line: Vec<u8>,
}

/// Why a response is not a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotABlock {
    #[error("is not JSON")]
    NotJson,
    #[error("is JSON without a block_number")]
    NoNumber,
}

/// The field that is read from a block's document.
#[derive(Deserialize)]
struct Numbered {
    block_number: BlockNumber,
}

impl BlockNumber {
    pub(super) const fn new(number: u64) -> Self {
        Self(number)
    }

    pub(super) const fn get(self) -> u64 {
        self.0
    }

    pub(super) const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for BlockNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for BlockNumber {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| text.parse().ok()).flatten();
        number.map(Self).ok_or("must be a block number, such as 24000000")
    }
}

impl Block {
    /// Parses a document.
    pub(super) fn read(body: &[u8]) -> Result<Self, NotABlock> {
        let mut line = one_line(body).map_err(|NotJson| NotABlock::NotJson)?;
        let Numbered { block_number } = serde_json::from_slice(&line).map_err(|_| NotABlock::NoNumber)?;
        line.push(b'\n');
        Ok(Self { number: block_number, line })
    }

    /// The line to write.
    pub(super) fn line(&self) -> &[u8] {
        &self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_is_read_with_its_number_and_text() {
        let text = r#"{"block_number":24000000,"price":0.10000000000000000001,"big":123456789012345678901234567890}"#;
        let block = Block::read(text.as_bytes()).unwrap();
        assert_eq!(block.number, BlockNumber::new(24_000_000));
        assert_eq!(block.line(), format!("{text}\n").as_bytes());
    }

    #[test]
    fn invalid_blocks_are_distinguished() {
        // response, what is wrong
        let table: [(&str, NotABlock); 11] = [
            ("", NotABlock::NotJson),
            ("<html>", NotABlock::NotJson),
            (r#"{"block_number":1"#, NotABlock::NotJson),
            (r#"{"block_number":1}{"block_number":2}"#, NotABlock::NotJson),
            ("null", NotABlock::NoNumber),
            ("{}", NotABlock::NoNumber),
            (r#"{"block_number":"1"}"#, NotABlock::NoNumber),
            (r#"{"block_number":1.0}"#, NotABlock::NoNumber),
            (r#"{"block_number":-1}"#, NotABlock::NoNumber),
            (r#"{"block_number":18446744073709551616}"#, NotABlock::NoNumber),
            (r#"{"block_number":1,"block_number":2}"#, NotABlock::NoNumber),
        ];
        for (body, expected) in table {
            assert_eq!(Block::read(body.as_bytes()), Err(expected), "{body}");
        }
    }

    #[test]
    fn block_number_must_be_digits() {
        for bad in ["", "+1", "-1", "1.0", "0x10", "18446744073709551616", " 1"] {
            assert!(bad.parse::<BlockNumber>().is_err(), "{bad}");
        }
        assert_eq!("007".parse(), Ok(BlockNumber::new(7)));
    }
}
