//! A server that is asked over HTTP, at its admin address.

mod failures;
mod keys;
mod payments;
mod requests;
mod webhooks;

use async_trait::async_trait;
use http::Method;
use metering_client::{Client, ClientError, Response};
use metering_core::access::{Email, KeyId};
use metering_core::administration::payments::{Assignment, ScanRequest};
use metering_core::charging::HoldId;
use metering_core::events::{DeliveryFilter, DeliveryId};
use metering_core::money::Refill;
use metering_core::operators::{OperatorName, OperatorToken, Role};
use metering_core::payments::{Plan, PlanKey};
use metering_core::prices::PriceNumber;
use metering_core::wire::admin::{
    AccountDocument, AccountRequestDocument, AccountRequestsDocument, AccountUsageDocument, AccountsDocument,
    AccountsUsageDocument, ApplyCatalogueRequest, AuditDocument, CreateAccountRequest, CreateOperatorRequest,
    EntryRequest, LimitsRequest, OperatorDocument, OperatorsDocument, PlanRequest, PlansDocument, PriceVersionDocument,
    PriceVersionsDocument, ReasonRequest, RefillDocument, RefillRequest, ReloadDocument, VerificationDocument,
};
use metering_core::wire::{
    ArrivalsDocument, AssignmentDocument, BalanceAlertDocument, ChangeKeyRequest, CreateKeyRequest, DeliveriesDocument,
    DeliveryDocument, KeyDocument, PaymentRecordsDocument, RotateKeyRequest, UsageSummary, WebhooksDocument,
};
use metering_core::{AccountId, ApiKey, Credits, Timestamp};
use serde::{Deserialize, Serialize};

pub(in crate::admin) use self::failures::refused;
use self::failures::unknown_outcome;
use super::Administrator;
use crate::admin::payments::chains::Chains;
use crate::client::session::percent::push_encoded;
use crate::failure::Failure;

/// A server, an operator's token and the reason for what is done.
#[derive(Debug)]
pub(in crate::admin) struct Remote {
    client: Client,
    /// The same, for a request that takes long before it responds.
    patient: Client,
    reason: String,
}

/// A response that issues a key.
#[derive(Deserialize)]
struct Issued {
    api_key: String,
    account: AccountDocument,
}

/// A response that issues an operator's token.
#[derive(Deserialize)]
struct IssuedOperator {
    token: String,
    operator: OperatorDocument,
}

impl IssuedOperator {
    fn parsed(self) -> Result<(OperatorDocument, OperatorToken), Failure> {
        let token = OperatorToken::parse(&self.token);
        let token = token.map_err(|_| Failure::Failed("the server's response has no token".to_owned()))?;
        Ok((self.operator, token))
    }
}

impl Remote {
    pub(in crate::admin) fn new(client: Client, patient: Client, reason: String) -> Self {
        Self { client, patient, reason }
    }

    /// Sends an action.
    async fn send(&self, method: Method, target: &str, document: &impl Serialize) -> Result<Response, Failure> {
        self.send_or(method, target, document, refused).await
    }

    /// Sends an action, with failures of its own.
    async fn send_or(
        &self,
        method: Method,
        target: &str,
        document: &impl Serialize,
        failure: impl FnOnce(ClientError) -> Failure,
    ) -> Result<Response, Failure> {
        if self.reason.is_empty() {
            return Err(Failure::Usage(
                "--reason is missing: a server requires one for every change, for the audit log".to_owned(),
            ));
        }
        let body = serde_json::to_vec(document).map_err(|error| Failure::Failed(error.to_string()))?;
        let sent = async { self.client.open(method, target, Some(body.into())).await?.read_to_end().await };
        sent.await.map_err(|error| unknown_outcome(&error).unwrap_or_else(|| failure(error)))
    }

    async fn get(&self, target: &str) -> Result<Response, Failure> {
        self.client.get(target).await.map_err(refused)
    }

    /// An action on an account that needs nothing but a reason.
    async fn act(&self, id: &AccountId, action: &str) -> Result<Response, Failure> {
        self.send(Method::POST, &format!("/admin/accounts/{id}/{action}"), &self.bare()).await
    }

    fn bare(&self) -> ReasonRequest {
        ReasonRequest { reason: self.reason.clone() }
    }

    async fn entry(&self, id: &AccountId, action: &str, entry: EntryRequest) -> Result<AccountDocument, Failure> {
        let entry = EntryRequest { reason: self.reason.clone(), ..entry };
        Ok(self.send(Method::POST, &format!("/admin/accounts/{id}/{action}"), &entry).await?.json()?)
    }

    async fn on_plan(&self, key: &PlanKey, action: &str) -> Result<(), Failure> {
        let target = format!("/admin/plans/{}/{}/{action}", key.chain_id, escaped(&key.id));
        self.send(Method::POST, &target, &self.bare()).await.map(drop)
    }
}

/// A text as a part of a path or query.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    push_encoded(text, &mut escaped);
    escaped
}

fn issued(response: &Response) -> Result<(AccountDocument, ApiKey), Failure> {
    let Issued { api_key, account } = response.json()?;
    let key = ApiKey::parse(&api_key).map_err(|_| Failure::Failed("the server's response has no key".to_owned()))?;
    Ok((account, key))
}

#[async_trait]
impl Administrator for Remote {
    async fn accounts(&self) -> Result<Vec<AccountDocument>, Failure> {
        let (mut accounts, mut target) = (Vec::new(), "/admin/accounts?limit=1000".to_owned());
        loop {
            let page: AccountsDocument = self.get(&target).await?.json()?;
            accounts.extend(page.accounts);
            match page.next {
                Some(next) => target = format!("/admin/accounts?limit=1000&after={}", escaped(&next)),
                None => return Ok(accounts),
            }
        }
    }

    async fn account(&self, id: &AccountId) -> Result<AccountDocument, Failure> {
        Ok(self.get(&format!("/admin/accounts/{id}")).await?.json()?)
    }

    async fn account_by_email(&self, email: &Email) -> Result<AccountDocument, Failure> {
        let missing =
            || Failure::NotFound(format!("no account has the email address {email}; revoked accounts are ignored"));
        let mut target = format!("/admin/accounts?limit=1000&search={}", escaped(email.as_str()));
        let (mut newest, search) = (None, target.clone());
        loop {
            let page: AccountsDocument = self.get(&target).await?.json()?;
            for account in page.accounts {
                let same = account.email.as_deref().and_then(|text| text.parse().ok()).as_ref() == Some(email);
                if !same || account.status != "active" {
                    continue;
                }
                if account.email_status.as_deref() != Some("pending") {
                    return Ok(account);
                }
                newest = Some(account);
            }
            match page.next {
                Some(next) => target = format!("{search}&after={}", escaped(&next)),
                None => return newest.ok_or_else(missing),
            }
        }
    }

    async fn create_account(&self, request: CreateAccountRequest) -> Result<(AccountDocument, ApiKey), Failure> {
        let request = CreateAccountRequest { reason: self.reason.clone(), ..request };
        issued(&self.send(Method::POST, "/admin/accounts", &request).await?)
    }

    async fn grant(&self, id: &AccountId, entry: EntryRequest) -> Result<AccountDocument, Failure> {
        self.entry(id, "grant", entry).await
    }

    async fn adjust(&self, id: &AccountId, entry: EntryRequest) -> Result<AccountDocument, Failure> {
        self.entry(id, "adjust", entry).await
    }

    async fn set_limits(&self, id: &AccountId, limits: LimitsRequest) -> Result<AccountDocument, Failure> {
        let limits = LimitsRequest { reason: self.reason.clone(), ..limits };
        Ok(self.send(Method::POST, &format!("/admin/accounts/{id}/limits"), &limits).await?.json()?)
    }

    async fn revoke_account(&self, id: &AccountId) -> Result<AccountDocument, Failure> {
        Ok(self.act(id, "revoke").await?.json()?)
    }

    async fn rotate_key(&self, id: &AccountId) -> Result<(AccountDocument, ApiKey), Failure> {
        issued(&self.act(id, "rotate-key").await?)
    }

    async fn keys(&self, id: &AccountId) -> Result<Vec<KeyDocument>, Failure> {
        self.all_keys(id).await
    }

    async fn key(&self, id: &AccountId, key: &KeyId) -> Result<KeyDocument, Failure> {
        self.one_key(id, key).await
    }

    async fn create_key(&self, id: &AccountId, key: CreateKeyRequest) -> Result<(KeyDocument, ApiKey), Failure> {
        self.create(id, key).await
    }

    async fn change_key(&self, id: &AccountId, key: &KeyId, change: ChangeKeyRequest) -> Result<KeyDocument, Failure> {
        self.change(id, key, change).await
    }

    async fn rotate_key_by_id(
        &self,
        id: &AccountId,
        key: &KeyId,
        rotation: RotateKeyRequest,
    ) -> Result<(KeyDocument, ApiKey), Failure> {
        self.rotate(id, key, rotation).await
    }

    async fn delete_key(&self, id: &AccountId, key: &KeyId) -> Result<(), Failure> {
        self.delete(id, key).await
    }

    async fn held_requests(&self, id: &AccountId, limit: u32) -> Result<AccountRequestsDocument, Failure> {
        self.requests_of(id, limit).await
    }

    async fn request(&self, id: &HoldId) -> Result<AccountRequestDocument, Failure> {
        self.request_by_id(id).await
    }

    async fn webhooks(&self, id: Option<&AccountId>) -> Result<WebhooksDocument, Failure> {
        self.webhooks_of(id).await
    }

    async fn deliveries(
        &self,
        id: Option<&AccountId>,
        filter: DeliveryFilter,
        after: Option<&str>,
        limit: u32,
    ) -> Result<DeliveriesDocument, Failure> {
        self.deliveries_of(id, filter, after, limit).await
    }

    async fn resend_delivery(&self, id: DeliveryId) -> Result<DeliveryDocument, Failure> {
        self.resend(id).await
    }

    async fn test_webhook(&self) -> Result<DeliveryDocument, Failure> {
        self.test().await
    }

    async fn remove_operator_webhook(&self) -> Result<(), Failure> {
        self.send(Method::POST, "/admin/webhooks/remove", &self.bare()).await.map(drop)
    }

    async fn set_balance_alert(&self, id: &AccountId, below: Option<Credits>) -> Result<BalanceAlertDocument, Failure> {
        self.set_alert(id, below).await
    }

    async fn plans(&self) -> Result<Vec<Plan>, Failure> {
        let PlansDocument { plans } = self.get("/admin/plans").await?.json()?;
        Ok(plans)
    }

    async fn put_plans(&self, plans: Vec<Plan>) -> Result<(), Failure> {
        for plan in plans {
            let request = PlanRequest { plan, reason: self.reason.clone() };
            self.send(Method::PUT, "/admin/plans", &request).await?;
        }
        Ok(())
    }

    async fn set_plan_active(&self, key: &PlanKey, active: bool) -> Result<(), Failure> {
        self.on_plan(key, if active { "activate" } else { "deactivate" }).await
    }

    async fn remove_plan(&self, key: &PlanKey) -> Result<(), Failure> {
        self.on_plan(key, "remove").await
    }

    async fn refill(&self) -> Result<Option<Refill>, Failure> {
        let RefillDocument { refill } = self.get("/admin/refill").await?.json()?;
        Ok(refill)
    }

    async fn set_refill(&self, refill: Option<Refill>) -> Result<(), Failure> {
        match refill {
            Some(refill) => {
                let request = RefillRequest { refill, reason: self.reason.clone() };
                self.send(Method::PUT, "/admin/refill", &request).await.map(drop)
            }
            None => self.send(Method::POST, "/admin/refill/remove", &self.bare()).await.map(drop),
        }
    }

    async fn price_versions(&self) -> Result<PriceVersionsDocument, Failure> {
        Ok(self.get("/admin/catalogue/versions").await?.json()?)
    }

    async fn price_catalogue(&self, number: PriceNumber) -> Result<String, Failure> {
        Ok(self.get(&format!("/admin/catalogue/versions/{number}")).await?.json()?)
    }

    async fn apply_catalogue(&self, catalogue: &str, at: Option<Timestamp>) -> Result<PriceVersionDocument, Failure> {
        let at = at.map(|at| at.to_string());
        let request = ApplyCatalogueRequest { catalogue: catalogue.into(), at, reason: self.reason.clone() };
        Ok(self.send(Method::POST, "/admin/catalogue/apply", &request).await?.json()?)
    }

    async fn cancel_catalogue(&self, number: PriceNumber) -> Result<PriceVersionDocument, Failure> {
        let target = format!("/admin/catalogue/versions/{number}/cancel");
        Ok(self.send(Method::POST, &target, &self.bare()).await?.json()?)
    }

    async fn operators(&self) -> Result<Vec<OperatorDocument>, Failure> {
        let OperatorsDocument { operators } = self.get("/admin/operators").await?.json()?;
        Ok(operators)
    }

    async fn create_operator(
        &self,
        name: &OperatorName,
        role: Role,
    ) -> Result<(OperatorDocument, OperatorToken), Failure> {
        let request = CreateOperatorRequest {
            name: name.to_string(),
            role: role.as_str().to_owned(),
            reason: self.reason.clone(),
        };
        self.send(Method::POST, "/admin/operators", &request).await?.json::<IssuedOperator>()?.parsed()
    }

    async fn rotate_operator_token(&self, name: &OperatorName) -> Result<(OperatorDocument, OperatorToken), Failure> {
        let target = format!("/admin/operators/{}/rotate-token", escaped(name.as_str()));
        self.send(Method::POST, &target, &self.bare()).await?.json::<IssuedOperator>()?.parsed()
    }

    async fn revoke_operator(&self, name: &OperatorName) -> Result<OperatorDocument, Failure> {
        let target = format!("/admin/operators/{}/revoke", escaped(name.as_str()));
        Ok(self.send(Method::POST, &target, &self.bare()).await?.json()?)
    }

    async fn reload(&self) -> Result<ReloadDocument, Failure> {
        Ok(self.send(Method::POST, "/admin/reload", &self.bare()).await?.json()?)
    }

    async fn audit_log(
        &self,
        subject: Option<&str>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<AuditDocument, Failure> {
        let mut target = format!("/admin/audit?limit={limit}");
        if let Some(subject) = subject {
            target.push_str(&format!("&subject={}", escaped(subject)));
        }
        if let Some(before) = before {
            target.push_str(&format!("&before={before}"));
        }
        Ok(self.get(&target).await?.json()?)
    }

    async fn usage(&self, id: &AccountId, days: u32) -> Result<UsageSummary, Failure> {
        Ok(self.get(&format!("/admin/accounts/{id}/usage?days={days}")).await?.json()?)
    }

    async fn usage_of_all(&self, days: u32) -> Result<Vec<AccountUsageDocument>, Failure> {
        let (mut accounts, first) = (Vec::new(), format!("/admin/usage?limit=1000&days={days}"));
        let mut target = first.clone();
        loop {
            let page: AccountsUsageDocument = self.get(&target).await?.json()?;
            accounts.extend(page.accounts);
            match page.next {
                Some(next) => target = format!("{first}&after={}", escaped(&next)),
                None => return Ok(accounts),
            }
        }
    }

    async fn verify(&self) -> Result<VerificationDocument, Failure> {
        Ok(self.patient.post("/admin/verify", &serde_json::json!({})).await.map_err(refused)?.json()?)
    }

    async fn payment_records(&self) -> Result<PaymentRecordsDocument, Failure> {
        self.all_records().await
    }

    async fn chains(&self) -> Result<Chains, Failure> {
        self.all_chains().await
    }

    async fn arrivals(&self, chain: &str, request: ScanRequest) -> Result<ArrivalsDocument, Failure> {
        self.all_arrivals(chain, request).await
    }

    async fn assign(&self, chain: &str, assignment: Assignment) -> Result<AssignmentDocument, Failure> {
        self.assign_payment(chain, assignment).await
    }
}
