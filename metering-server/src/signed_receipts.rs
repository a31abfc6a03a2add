//! Signed receipts of requests: what signs them, and the keys that it publishes. Embedders bring their own signer; this
//! is the server's. Statements are signed by the same key.

use std::sync::Arc;

use async_trait::async_trait;
use http::HeaderMap;
use metering_core::receipts::{ReceiptError, ReceiptScope, ReceiptSigner, Statement};
use metering_core::wire::{ReceiptKeyDocument, ReceiptKeysDocument};
use metering_core::{Clock, FullStore, Service, SystemRandomness};
use metering_proof::BatchSigner;
use tokio::sync::watch;

use crate::config::{Config, ConfigError};
use crate::did::Did;
use crate::http::{Document, Reply, cached};
use crate::operations::metric::counter;
use crate::statements::Statements;

/// The signer of a process, and its public keys.
#[derive(Debug, Clone)]
pub(crate) struct SignedReceipts {
    keys: Arc<[ReceiptKeyDocument]>,
    /// The same keys as a DID document, if the service can have one.
    did: Option<Document>,
    signer: Arc<dyn ReceiptSigner>,
    always: ReceiptScope,
    statements: Statements,
}

/// Counts the receipts that it signs.
#[derive(Debug)]
struct Counted(BatchSigner);

impl SignedReceipts {
    /// Starts to sign, if there are keys. While `log` has the origin of a log, receipts name it.
    ///
    /// # Errors
    /// When the keys cannot be used, or the service has no public URL yet.
    pub(crate) fn start(
        config: &Config,
        store: &Arc<dyn FullStore>,
        clock: &Arc<dyn Clock>,
        log: watch::Receiver<Option<String>>,
    ) -> Result<Option<Self>, ConfigError> {
        let Some(ring) = config.receipts.keys()? else { return Ok(None) };
        let always = ReceiptScope::of_accounts(config.receipts.always()?);
        let issuer = config.public_url.as_deref().map(|url| url.trim_end_matches('/').to_owned());
        // A reload can add the keys, but not the URL.
        let no_url = || ConfigError::key("public_url", "is needed by receipts.key_file, and takes a restart");
        let issuer = issuer.ok_or_else(no_url)?;
        let published = ring.published();
        let keys = serde_json::from_str::<ReceiptKeysDocument>(&published.to_json());
        let keys = keys.map_err(|error| ConfigError::key("receipts.key_file", error))?.keys.into();
        let did = Did::of(&issuer).map(|did| Document::new("application/did+json", did.document(&published)));
        let statements =
            metering_proof::Statements::new(Arc::clone(store) as _, ring.signing().clone(), issuer.clone());
        let statements = Statements::new(statements);
        let (store, clock) = (Arc::clone(store), Arc::clone(clock));
        let signer =
            BatchSigner::new(ring.signing().clone(), issuer, log, store as _, Arc::new(SystemRandomness), clock);
        Ok(Some(Self { keys, did, signer: Arc::new(Counted(signer)), always, statements }))
    }

    /// The service with what signs for it, or without it if there is nothing.
    pub(crate) fn in_service(receipts: Option<&Self>, service: Service) -> Service {
        match receipts {
            Some(receipts) => service.with_receipts(Arc::clone(&receipts.signer), receipts.always.clone()),
            None => service.without_receipts(),
        }
    }

    /// Builds statements of accounts.
    pub(crate) fn statements(&self) -> &Statements {
        &self.statements
    }

    /// The public keys.
    pub(crate) fn keys(&self) -> &[ReceiptKeyDocument] {
        &self.keys
    }

    /// The same as a DID document.
    pub(crate) fn did(&self, headers: &HeaderMap) -> Option<Reply> {
        self.did.as_ref().map(|document| cached(document, headers))
    }
}

#[async_trait]
impl ReceiptSigner for Counted {
    async fn sign(&self, statement: Statement) -> Result<String, ReceiptError> {
        let signed = self.0.sign(statement).await;
        let outcome = if signed.is_ok() { "signed" } else { "failed" };
        counter!("metering_receipts_total", "Receipts of requests, by outcome", "outcome" => outcome).increment(1);
        signed
    }
}
