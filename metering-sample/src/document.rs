//! The envelope of every response: that it is sample data, and which block it describes.

use bytes::Bytes;
use serde::Serialize;

use crate::chain::{Block, BlockNumber};

/// The notice in every response.
pub(crate) const NOTICE: &str = "Synthetic sample data, not a real market. Configure an upstream to serve real data.";

/// A response about a block. For responses about a period, it is the latest final block at the time of the request.
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

/// The JSON of a response about a block.
pub(crate) fn render<T: Serialize>(block: Block, content: T) -> Bytes {
    to_json(&Document {
        sample: true,
        notice: NOTICE,
        block_number: block.number,
        block_timestamp: block.mined_at.unix_seconds(),
        content,
    })
}

/// Serializes one of the sample's own documents.
pub(crate) fn to_json<T: Serialize>(document: &T) -> Bytes {
    // The size of a response with two trades, so that most are written without reallocation.
    const TYPICAL_BYTES: usize = 1_024;
    let mut json = Vec::with_capacity(TYPICAL_BYTES);
    serde_json::to_writer(&mut json, document).expect("the documents are structs of numbers and strings");
    json.into()
}
