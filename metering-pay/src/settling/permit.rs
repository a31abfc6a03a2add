//! Whether a payment may be executed at the service's cost now, and which limits its reverts count against.

use std::time::Duration;

use metering_core::chains::ChainError;

use crate::offers::{Exposure, Observation, OwnTransaction};
use crate::settling::Settler;
use crate::settling::guard::Turn;
use crate::settling::step::Step;

/// How long one step waits until the payment may be executed.
const PATIENCE: Duration = Duration::from_secs(15);

impl Step<'_> {
    /// Whether it may be executed now. An authorization with a place never waits for others, because they may be
    /// waiting for its place.
    pub(super) async fn turn(&mut self, has_place: bool) -> Result<Turn, ChainError> {
        let (settling, exposure) = (self.settling, self.exposure().await?);
        if exposure.code.is_some() && !settling.contract_wallets {
            return Ok(Turn::Never("its wallet has code of its own".to_owned()));
        }
        if let Some(pause) = settling.guard.pause(&exposure) {
            return Ok(Turn::Never(format!("too many payments of {} reverted", pause.subject)));
        }
        if self.memory.permit.is_some() {
            return Ok(Turn::Now);
        }
        if has_place {
            self.memory.permit = Some(settling.guard.permit_anyway(exposure));
            return Ok(Turn::Now);
        }
        Ok(match settling.guard.permit(exposure, PATIENCE).await {
            Ok(Some(permit)) => {
                self.memory.permit = Some(permit);
                Turn::Now
            }
            Ok(None) => Turn::Later,
            Err(pause) => Turn::Never(format!("too many payments of {} reverted", pause.subject)),
        })
    }

    async fn exposure(&self) -> Result<Exposure, ChainError> {
        let (chain_id, payer) = (self.record.signed.chain_id, self.record.signed.authorization.from);
        Ok(Exposure { chain_id, payer, code: self.chain.reader.code_hash(payer).await? })
    }

    /// Counts its revert, once, and whether it is in flight, also if another process sent it.
    pub(super) async fn keep_count(&mut self, seen: &Observation) -> Result<(), ChainError> {
        if !matches!(self.chain.settler, Settler::Own(_)) {
            return Ok(());
        }
        if seen.executed.is_some() {
            self.memory.permit = None;
        } else if matches!(seen.own, Some(OwnTransaction::Reverted(_))) && !seen.is_used {
            self.count_revert().await;
        } else if self.memory.permit.is_none() && self.record.has_open_place(seen.is_place_used) {
            self.memory.permit = Some(self.settling.guard.permit_anyway(self.exposure().await?));
        }
        Ok(())
    }

    async fn count_revert(&mut self) {
        if std::mem::replace(&mut self.memory.has_counted, true) {
            return;
        }
        let exposure = self.exposure().await.unwrap_or_else(|error| {
            let id = self.record.signed.id();
            tracing::warn!(payer = %id.payer, %error, "the code of a payer whose payment reverted cannot be read");
            Exposure { chain_id: id.chain_id, payer: id.payer, code: None }
        });
        self.settling.guard.reverted(&exposure);
    }
}
