//! Blocks, as far as payments are concerned.

use metering_core::{Block, Timestamp};
use serde::Deserialize;

use crate::encoding::{AddressData, Amount, Height, Quantity, Word};
use crate::failure::Failure;
use crate::lenient::Lenient;

/// The method that gives blocks.
pub(crate) const METHOD: &str = "eth_getBlockByNumber";

/// A block's head.
#[derive(Debug, Deserialize)]
pub(crate) struct Head {
    pub(crate) number: Height,
    hash: Word,
    pub(crate) timestamp: Quantity,
}

/// A block with its transactions.
#[derive(Debug, Deserialize)]
pub(crate) struct FullBlock {
    pub(crate) number: Height,
    /// In their order. One that lacks what a transfer of the native coin has is not one.
    pub(crate) transactions: Vec<Lenient<Sent>>,
}

/// A transaction in a block that sends the native coin.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Sent {
    pub(crate) hash: Word,
    pub(crate) to: AddressData,
    pub(crate) value: Amount,
}

impl Head {
    /// The block that was asked for by `number`.
    pub(crate) fn block(&self, number: Height) -> Result<Block, Failure> {
        if self.number != number {
            return Err(Failure::malformed(METHOD, "another block than the one asked for"));
        }
        let seconds = i64::try_from(self.timestamp.0).ok();
        let millis = seconds.and_then(|seconds| seconds.checked_mul(1000));
        let millis = millis.ok_or_else(|| Failure::malformed(METHOD, "a timestamp beyond all time"))?;
        Ok(Block { number: number.0, hash: self.hash.0, time: Timestamp::from_unix_millis(millis) })
    }
}
