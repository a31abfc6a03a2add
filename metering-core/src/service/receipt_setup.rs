//! The signer of receipts, and the accounts that always get them.

use std::sync::Arc;
use std::time::Duration;

use crate::access::account::AccountId;
use crate::receipts::{ReceiptScope, ReceiptSigner, Statement};

/// How long a response waits for its receipt. A signature that takes longer is left out.
const SIGN_WAIT: Duration = Duration::from_secs(1);

/// The signer of receipts, and the accounts that always get them.
#[derive(Debug, Clone)]
pub(super) struct ReceiptSetup {
    signer: Arc<dyn ReceiptSigner>,
    always: Arc<ReceiptScope>,
}

impl ReceiptSetup {
    pub(super) fn new(signer: Arc<dyn ReceiptSigner>, always: ReceiptScope) -> Self {
        Self { signer, always: Arc::new(always) }
    }

    /// Whether all responses to the account's charged requests get one.
    pub(super) fn always(&self, account: &AccountId) -> bool {
        self.always.has(account)
    }

    /// Signs a receipt; `None` if that fails, which is logged.
    pub(super) async fn sign(&self, statement: Statement) -> Option<String> {
        let request = statement.request;
        match tokio::time::timeout(SIGN_WAIT, self.signer.sign(statement)).await {
            Ok(Ok(receipt)) => Some(receipt),
            Ok(Err(error)) => {
                tracing::warn!(%error, %request, "a receipt could not be signed; the response is sent without it");
                None
            }
            Err(_) => {
                tracing::warn!(%request, "signing a receipt took too long; the response is sent without it");
                None
            }
        }
    }
}
