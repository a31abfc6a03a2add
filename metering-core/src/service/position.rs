//! How far a chain was scanned, with the hash of the last block: a reorganisation below it sends the scan back.
//!
//! The store's mark covers final blocks only, which never change. What lies between the mark and the newest confirmed
//! block is remembered by each process, and scanned again by one that starts anew.

use std::sync::PoisonError;

use crate::chain::{BlockHash, ChainError, ChainReader, Heights};
use crate::error::Error;
use crate::service::Service;
use crate::service::desk::Desk;

/// The last block that was scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    block: u64,
    hash: BlockHash,
}

impl Desk {
    /// The last block of a chain that needs no scan any more; `None` when there is none. `mark` is the store's.
    pub(super) async fn scanned_to(
        &self,
        chain_id: u64,
        reader: &dyn ChainReader,
        mark: Option<u64>,
    ) -> Result<Option<u64>, ChainError> {
        let known = self.positions.lock().unwrap_or_else(PoisonError::into_inner).get(&chain_id).copied();
        let Some(position) = known.filter(|position| mark.is_none_or(|mark| position.block > mark)) else {
            return Ok(mark);
        };
        let now = reader.block_hashes(&[position.block]).await?;
        if now.first().copied().flatten() == Some(position.hash) {
            return Ok(Some(position.block));
        }
        tracing::info!(chain_id, block = position.block, "the chain was reorganised; scanning its last blocks again");
        self.positions.lock().unwrap_or_else(PoisonError::into_inner).remove(&chain_id);
        Ok(mark)
    }

    /// Remembers how far a scan came. Without a hash, of which nobody is certain now, the blocks are scanned again.
    pub(super) fn scanned(&self, chain_id: u64, block: u64, hash: Option<BlockHash>) {
        if let Some(hash) = hash {
            let position = Position { block, hash };
            self.positions.lock().unwrap_or_else(PoisonError::into_inner).insert(chain_id, position);
        }
    }
}

impl Service {
    /// Moves the store's mark to the last final block that was scanned. `first` is the first block that was to be.
    pub(super) async fn mark_scanned(&self, chain_id: u64, first: u64, to: u64, heights: Heights) -> Result<(), Error> {
        let last = to.min(heights.finalized);
        if last >= first {
            self.store.set_scan_mark(chain_id, last).await?;
        }
        Ok(())
    }
}
