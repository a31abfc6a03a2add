//! Blocks: the parts that matter for payments.

use metering_core::Timestamp;
use metering_core::chains::Block;
use serde::Deserialize;

use crate::encoding::{AddressData, Amount, Height, Quantity, Word};
use crate::failure::Failure;
use crate::lenient::Lenient;

/// The method that returns blocks.
pub(crate) const METHOD: &str = "eth_getBlockByNumber";

/// A block's header.
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
    /// In block order. An entry without the fields of a native transfer is not a native transfer.
    pub(crate) transactions: Vec<Lenient<NativeTransaction>>,
}

/// A transaction in a block that sends the native coin.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct NativeTransaction {
    pub(crate) hash: Word,
    pub(crate) to: AddressData,
    pub(crate) value: Amount,
}

impl Head {
    /// The block, which must have the requested `number`.
    pub(crate) fn block(&self, number: Height) -> Result<Block, Failure> {
        if self.number != number {
            return Err(Failure::malformed(METHOD, "a block other than the requested one"));
        }
        let seconds = i64::try_from(self.timestamp.0).ok();
        let millis = seconds.and_then(|seconds| seconds.checked_mul(1000));
        let millis = millis.ok_or_else(|| Failure::malformed(METHOD, "a timestamp out of range"))?;
        Ok(Block { number: number.0, hash: self.hash.0, time: Timestamp::from_unix_millis(millis) })
    }
}
