//! The store itself.

use async_trait::async_trait;
use metering_config::Sources;
use metering_core::access::{Email, KeyId};
use metering_core::administration::payments::{Assignment, ScanRequest, scan};
use metering_core::administration::{Action, AdminError, Administration};
use metering_core::charging::HoldId;
use metering_core::events::{DeliveryFilter, DeliveryId};
use metering_core::money::Refill;
use metering_core::operators::{OperatorName, OperatorToken, Role};
use metering_core::payments::{Plan, PlanKey};
use metering_core::prices::PriceNumber;
use metering_core::store::{Cursor, Page};
use metering_core::wire::admin::{
    AccountDocument, AccountRequestDocument, AccountRequestsDocument, AccountUsageDocument, AuditDocument,
    CreateAccountRequest, EntryRequest, LimitsRequest, OperatorDocument, PriceVersionDocument, PriceVersionsDocument,
    ReloadDocument, VerificationDocument,
};
use metering_core::wire::{
    ArrivalsDocument, AssignmentDocument, BalanceAlertDocument, BalanceAlertRequest, ChangeKeyRequest,
    CreateKeyRequest, DeliveriesDocument, DeliveryDocument, KeyDocument, PaymentRecordsDocument, RotateKeyRequest,
    UsageSummary, WebhooksDocument,
};
use metering_core::{Account, AccountId, ApiKey, Credits, PaymentStore, Timestamp};

use super::Administrator;
use crate::admin::failures::{no_account, no_plan, out_of_range};
use crate::admin::payments::chains::{self, Chains};
use crate::admin::payments::progress::Progress;
use crate::admin::payments::refusal;
use crate::failure::Failure;

/// How many items are read per page.
const PAGE: u32 = 1_000;

/// A store, who changes it, and the configuration that says which chains there are.
#[derive(Debug)]
pub(in crate::admin) struct Local {
    administration: Administration,
    action: Action,
    sources: Sources,
}

impl Local {
    pub(in crate::admin) fn new(administration: Administration, action: Action, sources: Sources) -> Self {
        Self { administration, action, sources }
    }
}

impl From<AdminError> for Failure {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::NoSuchAccount(id) => no_account(&id),
            AdminError::NoSuchPlan(key) => no_plan(&key),
            AdminError::NotFound(text) => Self::NotFound(text),
            AdminError::Conflict(text) => Self::Conflict(text),
            AdminError::Invalid(text) => Self::Usage(text),
            AdminError::Store(error) => Self::Store(error),
            AdminError::Chain { .. } => Self::TryLater(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

fn document(account: &Account) -> AccountDocument {
    account.into()
}

#[async_trait]
impl Administrator for Local {
    async fn accounts(&self) -> Result<Vec<AccountDocument>, Failure> {
        let (mut accounts, mut after) = (Vec::new(), None);
        loop {
            let page = self.administration.accounts(None, after.as_ref(), PAGE).await?;
            accounts.extend(page.items.iter().map(document));
            after = page.next;
            if after.is_none() {
                return Ok(accounts);
            }
        }
    }

    async fn account(&self, id: &AccountId) -> Result<AccountDocument, Failure> {
        Ok(document(&self.administration.account(id).await?))
    }

    async fn account_by_email(&self, email: &Email) -> Result<AccountDocument, Failure> {
        Ok(document(&self.administration.account_by_email(email).await?))
    }

    async fn create_account(&self, request: CreateAccountRequest) -> Result<(AccountDocument, ApiKey), Failure> {
        let (account, key) = self.administration.create_account(&self.action, &request).await?;
        Ok((document(&account), key))
    }

    async fn grant(&self, id: &AccountId, entry: EntryRequest) -> Result<AccountDocument, Failure> {
        Ok(document(&self.administration.grant(&self.action, id, &entry).await?))
    }

    async fn adjust(&self, id: &AccountId, entry: EntryRequest) -> Result<AccountDocument, Failure> {
        Ok(document(&self.administration.adjust(&self.action, id, &entry).await?))
    }

    async fn set_limits(&self, id: &AccountId, limits: LimitsRequest) -> Result<AccountDocument, Failure> {
        Ok(document(&self.administration.set_limits(&self.action, id, &limits).await?))
    }

    async fn revoke_account(&self, id: &AccountId) -> Result<AccountDocument, Failure> {
        Ok(document(&self.administration.revoke_account(&self.action, id).await?))
    }

    async fn rotate_key(&self, id: &AccountId) -> Result<(AccountDocument, ApiKey), Failure> {
        let (account, key) = self.administration.rotate_key(&self.action, id).await?;
        Ok((document(&account), key))
    }

    async fn keys(&self, id: &AccountId) -> Result<Vec<KeyDocument>, Failure> {
        let (mut keys, mut after) = (Vec::new(), None);
        loop {
            let page = self.administration.keys(id, after.as_ref(), PAGE).await?;
            keys.extend(page.data);
            after = page.next.map(Cursor::new);
            if after.is_none() {
                return Ok(keys);
            }
        }
    }

    async fn key(&self, id: &AccountId, key: &KeyId) -> Result<KeyDocument, Failure> {
        Ok(self.administration.key(id, key).await?)
    }

    async fn create_key(&self, id: &AccountId, key: CreateKeyRequest) -> Result<(KeyDocument, ApiKey), Failure> {
        Ok(self.administration.create_key(&self.action, id, &key).await?)
    }

    async fn change_key(&self, id: &AccountId, key: &KeyId, change: ChangeKeyRequest) -> Result<KeyDocument, Failure> {
        Ok(self.administration.change_key(&self.action, id, key, &change).await?)
    }

    async fn rotate_key_by_id(
        &self,
        id: &AccountId,
        key: &KeyId,
        rotation: RotateKeyRequest,
    ) -> Result<(KeyDocument, ApiKey), Failure> {
        Ok(self.administration.rotate_key_by_id(&self.action, id, key, &rotation).await?)
    }

    async fn delete_key(&self, id: &AccountId, key: &KeyId) -> Result<(), Failure> {
        Ok(self.administration.delete_key(&self.action, id, key).await?)
    }

    async fn held_requests(&self, id: &AccountId, limit: u32) -> Result<AccountRequestsDocument, Failure> {
        Ok(self.administration.held_requests(id, limit).await?)
    }

    async fn request(&self, id: &HoldId) -> Result<AccountRequestDocument, Failure> {
        Ok(self.administration.request(id).await?)
    }

    async fn webhooks(&self, id: Option<&AccountId>) -> Result<WebhooksDocument, Failure> {
        Ok(self.administration.webhooks(id).await?)
    }

    async fn deliveries(
        &self,
        id: Option<&AccountId>,
        filter: DeliveryFilter,
        after: Option<&str>,
        limit: u32,
    ) -> Result<DeliveriesDocument, Failure> {
        let after = after.map(|after| Cursor::new(after.to_owned()));
        Ok(self.administration.deliveries(id, filter, after.as_ref(), limit).await?)
    }

    async fn resend_delivery(&self, id: DeliveryId) -> Result<DeliveryDocument, Failure> {
        Ok(self.administration.resend_delivery(&self.action, id).await?)
    }

    async fn test_webhook(&self) -> Result<DeliveryDocument, Failure> {
        Ok(self.administration.test_webhook(&self.action).await?)
    }

    async fn remove_operator_webhook(&self) -> Result<(), Failure> {
        Ok(self.administration.remove_operator_webhook(&self.action).await?)
    }

    async fn set_balance_alert(&self, id: &AccountId, below: Option<Credits>) -> Result<BalanceAlertDocument, Failure> {
        let request = BalanceAlertRequest { below: Some(below) };
        Ok(self.administration.set_balance_alert(&self.action, id, &request).await?)
    }

    async fn plans(&self) -> Result<Vec<Plan>, Failure> {
        Ok(self.administration.plans().await?)
    }

    async fn put_plans(&self, mut plans: Vec<Plan>) -> Result<(), Failure> {
        if plans.len() == 1
            && let Some(plan) = plans.pop()
        {
            self.administration.put_plan(&self.action, plan).await?;
            return Ok(());
        }
        self.administration.put_plans(&self.action, plans).await?;
        Ok(())
    }

    async fn set_plan_active(&self, key: &PlanKey, active: bool) -> Result<(), Failure> {
        Ok(self.administration.set_plan_active(&self.action, key, active).await?)
    }

    async fn remove_plan(&self, key: &PlanKey) -> Result<(), Failure> {
        Ok(self.administration.remove_plan(&self.action, key).await?)
    }

    async fn refill(&self) -> Result<Option<Refill>, Failure> {
        Ok(self.administration.refill().await?)
    }

    async fn set_refill(&self, refill: Option<Refill>) -> Result<(), Failure> {
        Ok(self.administration.set_refill(&self.action, refill).await?)
    }

    async fn price_versions(&self) -> Result<PriceVersionsDocument, Failure> {
        Ok(self.administration.price_versions().await?)
    }

    async fn price_catalogue(&self, number: PriceNumber) -> Result<String, Failure> {
        Ok(self.administration.price_catalogue(number).await?.to_string())
    }

    async fn apply_catalogue(&self, catalogue: &str, at: Option<Timestamp>) -> Result<PriceVersionDocument, Failure> {
        Ok(self.administration.apply_catalogue(&self.action, catalogue, at).await?)
    }

    async fn cancel_catalogue(&self, number: PriceNumber) -> Result<PriceVersionDocument, Failure> {
        Ok(self.administration.cancel_catalogue(&self.action, number).await?)
    }

    async fn operators(&self) -> Result<Vec<OperatorDocument>, Failure> {
        Ok(self.administration.operators().await?.iter().map(OperatorDocument::from).collect())
    }

    async fn create_operator(
        &self,
        name: &OperatorName,
        role: Role,
    ) -> Result<(OperatorDocument, OperatorToken), Failure> {
        let (operator, token) = self.administration.create_operator(&self.action, name.clone(), role).await?;
        Ok((OperatorDocument::from(&operator), token))
    }

    async fn rotate_operator_token(&self, name: &OperatorName) -> Result<(OperatorDocument, OperatorToken), Failure> {
        let (operator, token) = self.administration.rotate_operator_token(&self.action, name).await?;
        Ok((OperatorDocument::from(&operator), token))
    }

    async fn revoke_operator(&self, name: &OperatorName) -> Result<OperatorDocument, Failure> {
        Ok(OperatorDocument::from(&self.administration.revoke_operator(&self.action, name).await?))
    }

    async fn reload(&self) -> Result<ReloadDocument, Failure> {
        let problem = "reload asks a running server: name its admin address with --server";
        Err(Failure::Usage(problem.to_owned()))
    }

    async fn audit_log(
        &self,
        subject: Option<&str>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<AuditDocument, Failure> {
        Ok(self.administration.audit_log(subject, before, limit).await?)
    }

    async fn usage(&self, id: &AccountId, days: u32) -> Result<UsageSummary, Failure> {
        let report = self.administration.usage(id, days).await?;
        let keys = self.administration.key_labels(id).await?;
        let prices = self.administration.price_history(days).await?;
        let events = self.administration.lifetime_events(&report, days).await?;
        UsageSummary::new((report, events), &keys, &prices, days).ok_or_else(out_of_range)
    }

    async fn usage_of_all(&self, days: u32) -> Result<Vec<AccountUsageDocument>, Failure> {
        let (mut accounts, mut after) = (Vec::new(), None);
        loop {
            let page = self.administration.usage_of_accounts(days, after.as_ref(), PAGE).await?;
            accounts.extend(page.accounts);
            after = page.next.map(Cursor::new);
            if after.is_none() {
                return Ok(accounts);
            }
        }
    }

    async fn verify(&self) -> Result<VerificationDocument, Failure> {
        Ok(self.administration.verify().await?)
    }

    async fn payment_records(&self) -> Result<PaymentRecordsDocument, Failure> {
        let plans = self.administration.plans().await?;
        let (mut items, mut after) = (Vec::new(), None);
        loop {
            let page = self.administration.payments(after.as_ref(), PAGE).await?;
            items.extend(page.items);
            after = page.next;
            if after.is_none() {
                return Ok(PaymentRecordsDocument::new(&Page { items, next: None }, &plans));
            }
        }
    }

    async fn chains(&self) -> Result<Chains, Failure> {
        chains::all(&self.sources)
    }

    async fn arrivals(&self, chain: &str, request: ScanRequest) -> Result<ArrivalsDocument, Failure> {
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

    async fn assign(&self, chain: &str, assignment: Assignment) -> Result<AssignmentDocument, Failure> {
        let open = chains::open_one(&self.sources, chain).await?;
        let assigned = self.administration.assign(&self.action, open.readable(), &assignment).await;
        Ok(AssignmentDocument::with_details(&assigned.map_err(refusal::of_assignment)?))
    }
}
