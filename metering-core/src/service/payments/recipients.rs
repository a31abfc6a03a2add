//! Registers where payments are received, and finds the oldest payment to accept there.

use std::collections::BTreeSet;

use crate::chains::address::Address;
use crate::error::Error;
use crate::payments::not_before::NotBefore;
use crate::payments::payment::PaymentTarget;
use crate::payments::plan::Plan;
use crate::payments::recipient::Registration;
use crate::service::Payments;

impl Payments<'_> {
    /// Registers the recipients of all configured chains and their plans with the store, which records when each was
    /// first seen. Top-ups that were mined earlier are refused, so call this at startup, before publishing where to
    /// pay.
    ///
    /// # Errors
    /// When the store fails. Registration is retried before plans are listed and payments are checked.
    pub async fn register_recipients(self) -> Result<(), Error> {
        let Ok(store) = self.state.store() else { return Ok(()) };
        let plans = store.plans().await?;
        self.register(self.configured_recipients(&plans)).await
    }

    /// The same for plans that were just read. A failure is only logged, because registration is retried before a
    /// payment is checked.
    pub(super) async fn register_recipients_of(self, plans: &[Plan]) {
        if let Err(error) = self.register(self.configured_recipients(plans)).await {
            tracing::warn!(%error, "the recipients of payments could not be registered; trying again");
        }
    }

    fn configured_recipients(self, plans: &[Plan]) -> BTreeSet<(u64, Address)> {
        let mut recipients = BTreeSet::new();
        for chain in &self.config.chains {
            recipients.insert((chain.chain_id, chain.recipient));
            let of_chain = plans.iter().filter(|plan| plan.chain_id == chain.chain_id);
            recipients.extend(of_chain.map(|plan| (chain.chain_id, plan.target(chain).recipient)));
        }
        recipients
    }

    /// Registers recipients, unless this process has registered them all.
    async fn register(self, recipients: BTreeSet<(u64, Address)>) -> Result<(), Error> {
        if recipients.iter().all(|recipient| self.state.known_since(recipient).is_some()) {
            return Ok(());
        }
        let configured = recipients.into_iter().collect();
        for registration in self.state.store()?.register_recipients(configured, self.access.now()).await? {
            self.state.remember(&registration);
            log_registration(&registration);
        }
        Ok(())
    }

    /// The oldest payment to accept for a target, other than a quote's.
    pub(super) async fn not_before(self, target: &PaymentTarget) -> Result<NotBefore, Error> {
        if let Some(configured) = self.configured_not_before(target.chain_id) {
            return Ok(configured);
        }
        let recipient = (target.chain_id, target.recipient);
        if self.state.known_since(&recipient).is_none() {
            let mut recipients = self.configured_recipients(&self.state.store()?.plans().await?);
            recipients.insert(recipient);
            self.register(recipients).await?;
        }
        self.state.known_since(&recipient).map(NotBefore::since).ok_or(Error::Internal)
    }

    /// The operator's setting for a chain. Quotes need no other limit: a payment is never older than its quote.
    pub(super) fn configured_not_before(self, chain_id: u64) -> Option<NotBefore> {
        self.state.settings.not_before.get(&chain_id).copied()
    }
}

fn log_registration(registration: &Registration) {
    let Registration { chain_id, recipient, since, is_new, other_store, replaces } = registration;
    if let Some(other) = other_store {
        let other = hex::encode(other.as_bytes());
        tracing::warn!(
            chain_id, %recipient, %since, other_store = other,
            "another store has received payments for this recipient until now; make sure that no server uses that \
             store any more, or both will credit the same payments"
        );
    }
    if let Some(before) = replaces {
        tracing::warn!(
            chain_id, %recipient, %before, %since,
            "the recipient of payments has changed; top-ups mined earlier are refused unless not_before allows them"
        );
    } else if *is_new {
        tracing::info!(
            chain_id, %recipient, %since,
            "payments to this recipient are accepted from now on; do not use it with any other store"
        );
    }
}
