//! Payments, as a server lists and assigns them. Failures have the exit codes that they have on a store.

use http::Method;
use metering_admin::payments::{Assignment, ScanRequest, Worth};
use metering_admin::wire::{ArrivalsDocument, AssignRequest, AssignmentDocument};
use metering_client::{ClientError, Response};
use serde::Deserialize;

use super::{Remote, escaped, refused};
use crate::admin::payments::chains::Chains;
use crate::admin::payments::progress::Progress;
use crate::failure::Failure;

/// The part of `GET /admin/health` that is about chains.
#[derive(Deserialize)]
struct Health {
    chains: Vec<ChainHealth>,
}

#[derive(Deserialize)]
struct ChainHealth {
    name: String,
    has_rpc_urls: bool,
}

impl Remote {
    pub(in crate::admin::administrator) async fn chains(&self) -> Result<Chains, Failure> {
        let Health { chains: found } = self.get("/admin/health").await?.json()?;
        let mut chains = Chains::default();
        for ChainHealth { name, has_rpc_urls } in found {
            let names = if has_rpc_urls { &mut chains.readable } else { &mut chains.unreadable };
            names.push(name);
        }
        chains.if_readable("the server's configuration")
    }

    /// Requests the range in parts, because a response covers a limited number of blocks.
    pub(in crate::admin::administrator) async fn arrivals(
        &self,
        chain: &str,
        request: ScanRequest,
    ) -> Result<ArrivalsDocument, Failure> {
        let progress = Progress::new();
        let mut document = self.some_arrivals(chain, request).await?;
        while let Some(next) = document.scanned.last().and_then(|scanned| scanned.next_block) {
            progress.show(&format!("chain {chain}: block {next}"));
            let rest = ScanRequest { from_block: Some(next), ..request };
            document.continue_with(self.some_arrivals(chain, rest).await?);
        }
        Ok(document)
    }

    async fn some_arrivals(&self, chain: &str, request: ScanRequest) -> Result<ArrivalsDocument, Failure> {
        let mut target = format!("/admin/payments/arrivals?chain={}&all={}", escaped(chain), request.with_used);
        for (name, block) in [("from_block", request.from_block), ("to_block", request.to_block)] {
            if let Some(block) = block {
                target.push_str(&format!("&{name}={block}"));
            }
        }
        let response: Response = self.client.get(&target).await.map_err(not_scanned)?;
        Ok(response.json()?)
    }

    pub(in crate::admin::administrator) async fn assign(
        &self,
        chain: &str,
        assignment: Assignment,
    ) -> Result<AssignmentDocument, Failure> {
        let Assignment { tx, account, worth, despite_quote, .. } = assignment;
        let (plan_id, credits) = match worth {
            Worth::Plan(plan) => (Some(plan), None),
            Worth::Credits(credits) => (None, Some(credits)),
        };
        let request = AssignRequest {
            chain: chain.to_owned(),
            tx_hash: tx.to_string(),
            account: account.to_string(),
            plan_id,
            credits,
            despite_quote,
            reason: self.reason.clone(),
        };
        Ok(self.send_or(Method::POST, "/admin/payments/assign", &request, not_assigned).await?.json()?)
    }
}

/// The failure for a chain that was not scanned.
fn not_scanned(error: ClientError) -> Failure {
    match &error {
        ClientError::Refused(refusal) if refusal.code.starts_with("rpc_") => Failure::Failed(refusal.to_string()),
        _ => refused(error),
    }
}

/// The failure for a payment that was not assigned. The arguments were valid, so a 400 is about the transaction.
fn not_assigned(error: ClientError) -> Failure {
    match &error {
        ClientError::Refused(refusal) if refusal.status.as_u16() == 400 || refusal.code == "payment_unconfirmed" => {
            Failure::Failed(refusal.to_string())
        }
        _ => not_scanned(error),
    }
}
