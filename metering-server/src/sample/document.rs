//! The envelope of every answer: that it is sample data, and which block it is about.

use bytes::Bytes;
use serde::Serialize;

use super::chain::{Block, BlockNumber};

/// What every answer says of itself.
pub(super) const NOTICE: &str = "Synthetic sample data, not a real market. Configure an upstream to serve real data.";

/// An answer about a block. For answers about a time, the block is the latest final one that they were made at.
#[derive(Serialize)]
struct Document<T> {
    sample: bool,
    notice: &'static str,
    block_number: BlockNumber,
    /// Unix time in seconds, the unit of the routes' own parameters.
    block_timestamp: i64,
    #[serde(flatten)]
    content: T,
}

/// The JSON of an answer about a block.
pub(super) fn answer<T: Serialize>(block: Block, content: T) -> Bytes {
    to_json(&Document {
        sample: true,
        notice: NOTICE,
        block_number: block.number,
        block_timestamp: block.mined_at.unix_seconds(),
        content,
    })
}

/// The JSON of one of the sample's own documents.
pub(super) fn to_json<T: Serialize>(document: &T) -> Bytes {
    // What an answer takes that holds two trades, so that most are written without growing.
    const USUAL_BYTES: usize = 1_024;
    let mut json = Vec::with_capacity(USUAL_BYTES);
    serde_json::to_writer(&mut json, document).expect("the documents are structs of numbers and texts");
    json.into()
}
