//! Entry points for fuzzers, compiled only with `--cfg fuzzing`: the parsers of RPC responses are not public otherwise.

use serde::Deserialize;

use crate::block::{FullBlock, Head};
use crate::call::Call;
use crate::encoding::Height;
use crate::log::Log;
use crate::results::BatchResults;
use crate::transaction::Transaction;

/// Parses a body as the response to a batch of four calls, and reads all results.
pub fn read_batch(body: &[u8]) {
    let calls = [Call::chain_id(), Call::block(1, false), Call::block(1, true), Call::block_number()];
    let Ok(mut results) = BatchResults::parse(body, &calls.each_ref()) else { return };
    let _ = results.next::<Height>();
    if let Ok(Some(head)) = results.next::<Option<Head>>() {
        let block = head.block(head.number);
        assert!(block.is_err() || block.is_ok_and(|block| block.number == head.number.0));
    }
    let _ = results.next_or_error::<Option<FullBlock>>();
    let _ = results.next::<Vec<Log>>().map(|logs| logs.iter().filter_map(Log::transfer).count());
    // All results must be read, whatever the body was.
    assert!(results.next::<serde::de::IgnoredAny>().is_err());
}

/// Parses one log, transaction or block. An attacker who deploys a contract controls parts of them.
pub fn read_object(json: &[u8]) {
    if let Ok(log) = serde_json::from_slice::<Log>(json) {
        let _ = log.transfer();
    }
    if let Ok(transaction) = serde_json::from_slice::<Transaction>(json) {
        let _ = transaction.native();
    }
    let _ = serde_json::from_slice::<Option<Head>>(json);
    let _ = serde_json::from_slice::<Option<FullBlock>>(json);
    let _ = Height::deserialize(serde::de::value::StrDeserializer::<serde::de::value::Error>::new(
        &String::from_utf8_lossy(json),
    ));
}
