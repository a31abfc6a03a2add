//! The store itself.

use metering_admin::payments::{Assignment, ScanRequest, scan};
use metering_admin::wire::{AccountDocument, ArrivalsDocument, AssignmentDocument, VerificationDocument};
use metering_admin::{Action, AdminCall, AdminError, Administration, Authority};
use metering_config::Sources;
use metering_core::access::Email;
use metering_core::payments::Plan;
use metering_core::{FullStore, PaymentStore};

use crate::admin::failures::{no_account, no_plan};
use crate::admin::payments::chains::{self, Chains};
use crate::admin::payments::progress::Progress;
use crate::admin::payments::refusal;
use crate::failure::Failure;

/// A store, the actor who changes it, and the configuration with the chains.
#[derive(Debug)]
pub(in crate::admin) struct Local {
    administration: Administration,
    action: Action,
    sources: Sources,
}

impl From<AdminError> for Failure {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::NoSuchAccount(id) => no_account(&id),
            AdminError::NoSuchPlan(key) => no_plan(&key),
            AdminError::NotFound(text) => Self::NotFound(text),
            AdminError::Conflict(text) => Self::Conflict(text),
            AdminError::Invalid(text) => Self::Usage(text),
            AdminError::Request(error) => Self::Usage(error.to_string()),
            AdminError::Forbidden(text) => Self::Unauthorized(text),
            AdminError::Store(error) => Self::Store(error),
            AdminError::Chain { .. } => Self::TryLater(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl Local {
    pub(in crate::admin) fn new(administration: Administration, action: Action, sources: Sources) -> Self {
        Self { administration, action, sources }
    }

    pub(super) async fn call<C: AdminCall>(
        &self,
        parameters: C::Parameters,
        body: C::Body,
    ) -> Result<C::Reply, Failure> {
        let by = C::By::of(self.action.actor().clone(), self.action.reason())?;
        Ok(C::run(&self.administration, &by, parameters, body).await?)
    }

    pub(super) async fn account_by_email(&self, email: &Email) -> Result<AccountDocument, Failure> {
        Ok(AccountDocument::from(&self.administration.account_by_email(email).await?))
    }

    pub(super) async fn put_plans(&self, plans: Vec<Plan>) -> Result<(), Failure> {
        self.administration.put_plans(&self.action, plans).await?;
        Ok(())
    }

    pub(super) fn store(&self) -> &dyn FullStore {
        &**self.administration.store()
    }

    pub(super) async fn verify(&self) -> Result<VerificationDocument, Failure> {
        Ok(self.administration.verify().await?)
    }

    pub(super) fn chains(&self) -> Result<Chains, Failure> {
        chains::all(&self.sources)
    }

    pub(super) async fn arrivals(&self, chain: &str, request: ScanRequest) -> Result<ArrivalsDocument, Failure> {
        let plans = self.administration.plans().await?;
        let open = chains::open_one(&self.sources, chain).await?;
        let store: &dyn PaymentStore = &**self.administration.store();
        let progress = Progress::new();
        let mut show = |next: u64, last: u64| progress.show(&format!("chain {chain}: block {next} of {last}"));
        let scanned = scan(store, &plans, open.readable(), request, &mut show).await.map_err(refusal::of_scan)?;
        let mut document = ArrivalsDocument::default();
        document.add(open.readable(), &scanned, &plans);
        Ok(document)
    }

    pub(super) async fn assign(&self, chain: &str, assignment: Assignment) -> Result<AssignmentDocument, Failure> {
        let open = chains::open_one(&self.sources, chain).await?;
        let administration = self.administration.clone().with_rates(chains::rates(&self.sources)?);
        let assigned = administration.assign(&self.action, open.readable(), &assignment).await;
        Ok(AssignmentDocument::with_details(&assigned.map_err(refusal::of_assignment)?))
    }
}
