//! How far a chain has been scanned, with the hash of the last block, so a reorganisation restarts the scan earlier.
//!
//! The store's mark covers only final blocks, which never change. Each process remembers for itself which blocks it has
//! scanned between the mark and the newest confirmed block, and scans them again after a restart.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::chains::chain::{BlockHash, ChainError, ChainReader};

/// The last scanned block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    block: u64,
    hash: BlockHash,
}

/// The last scanned block of each chain.
#[derive(Debug, Default)]
pub(super) struct Positions(Mutex<HashMap<u64, Position>>);

impl Positions {
    /// The last block of a chain that needs no further scan, or `None`. `mark` is the store's mark.
    pub(super) async fn scanned_to(
        &self,
        chain_id: u64,
        reader: &dyn ChainReader,
        mark: Option<u64>,
    ) -> Result<Option<u64>, ChainError> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&chain_id).copied();
        let Some(position) = known.filter(|position| mark.is_none_or(|mark| position.block > mark)) else {
            return Ok(mark);
        };
        let now = reader.block_hashes(&[position.block]).await?;
        if now.first().copied().flatten() == Some(position.hash) {
            return Ok(Some(position.block));
        }
        tracing::info!(chain_id, block = position.block, "the chain was reorganised; scanning its last blocks again");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&chain_id);
        Ok(mark)
    }

    /// Stores the progress of a scan. Without a hash (when sources are uncertain) the blocks are scanned again.
    pub(super) fn scanned(&self, chain_id: u64, block: u64, hash: Option<BlockHash>) {
        if let Some(hash) = hash {
            let position = Position { block, hash };
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(chain_id, position);
        }
    }
}
