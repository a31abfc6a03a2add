//! Where commands run: on the store itself, or on a server over HTTP.
//!
//! An [`AdminCall`] is the same for both. The methods here are for operations that need more than one call: paged
//! lists, and those that need chains or the server itself.

mod local;
mod remote;

use metering_admin::calls::accounts::{AccountsPage, ListAccounts};
use metering_admin::calls::keys::{KeysPage, ListKeys};
use metering_admin::calls::plans::PutPlan;
use metering_admin::calls::reports::{ListPayments, ListUsage, PaymentsPage, UsagePage};
use metering_admin::payments::{Assignment, ScanRequest};
use metering_admin::wire::{
    AccountDocument, AccountUsageDocument, ArrivalsDocument, AssignmentDocument, PaymentRecordsDocument, PlanRequest,
    ReasonRequest, ReloadDocument, VerificationDocument,
};
use metering_admin::{AdminCall, Bounded};
use metering_core::access::Email;
use metering_core::payments::Plan;
use metering_core::store::Cursor;
use metering_core::wire::KeyDocument;
use metering_core::{AccountId, FullStore};
use serde::de::DeserializeOwned;

use super::payments::chains::Chains;
use crate::failure::Failure;

pub(super) use local::Local;
pub(super) use remote::{Remote, refused};

/// Carries out the commands. Changes are in the audit log with the run's reason.
#[derive(Debug)]
pub(super) enum Administrator {
    /// On the store.
    Local(Local),
    /// By asking a server.
    Remote(Remote),
}

impl Administrator {
    /// Makes a call.
    pub(super) async fn call<C>(&self, parameters: C::Parameters, body: C::Body) -> Result<C::Reply, Failure>
    where
        C: AdminCall<Reply: DeserializeOwned>,
    {
        match self {
            Self::Local(local) => local.call::<C>(parameters, body).await,
            Self::Remote(remote) => remote.call::<C>(&parameters, body).await,
        }
    }

    /// Makes a call that has no body.
    pub(super) async fn get<C>(&self, parameters: C::Parameters) -> Result<C::Reply, Failure>
    where
        C: AdminCall<Body = (), Reply: DeserializeOwned>,
    {
        self.call::<C>(parameters, ()).await
    }

    /// Takes an action whose only parameter is the run's reason.
    pub(super) async fn act<C>(&self, parameters: C::Parameters) -> Result<C::Reply, Failure>
    where
        C: AdminCall<Body = ReasonRequest, Reply: DeserializeOwned>,
    {
        self.call::<C>(parameters, ReasonRequest::default()).await
    }

    /// Makes a call for each page of a list. `page` is the page to request; `take` processes it, and returns its
    /// `next`.
    async fn pages<C>(
        &self,
        page: impl Fn(Option<Cursor>) -> C::Parameters,
        mut take: impl FnMut(C::Reply) -> Option<String>,
    ) -> Result<(), Failure>
    where
        C: AdminCall<Body = (), Reply: DeserializeOwned>,
    {
        let mut after = None;
        loop {
            after = take(self.get::<C>(page(after)).await?).map(Cursor::new);
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// All accounts, oldest first.
    pub(super) async fn accounts(&self) -> Result<Vec<AccountDocument>, Failure> {
        let mut accounts = Vec::new();
        let page = |after| AccountsPage {
            search: None,
            order: None,
            from: None,
            to: None,
            state: None,
            after,
            limit: Bounded::MAX,
        };
        self.pages::<ListAccounts>(page, |page| {
            accounts.extend(page.accounts);
            page.next
        })
        .await?;
        Ok(accounts)
    }

    /// The account with the verified address; if there is none, the newest one that has not verified it yet.
    pub(super) async fn account_by_email(&self, email: &Email) -> Result<AccountDocument, Failure> {
        match self {
            Self::Local(local) => local.account_by_email(email).await,
            Self::Remote(remote) => remote.account_by_email(email).await,
        }
    }

    /// The keys of an account, oldest first.
    pub(super) async fn keys(&self, id: &AccountId) -> Result<Vec<KeyDocument>, Failure> {
        let mut keys = Vec::new();
        let page = |after| KeysPage { id: id.clone(), after, limit: Bounded::MAX };
        self.pages::<ListKeys>(page, |page| {
            keys.extend(page.data);
            page.next
        })
        .await?;
        Ok(keys)
    }

    /// Saves plans. A store saves all or none; a server saves them one at a time.
    pub(super) async fn put_plans(&self, plans: Vec<Plan>) -> Result<(), Failure> {
        match self {
            Self::Local(local) if plans.len() != 1 => local.put_plans(plans).await,
            Self::Local(_) | Self::Remote(_) => {
                for plan in plans {
                    self.call::<PutPlan>((), PlanRequest { plan, reason: String::new() }).await?;
                }
                Ok(())
            }
        }
    }

    /// Makes the server reload its configuration.
    pub(super) async fn reload(&self) -> Result<ReloadDocument, Failure> {
        match self {
            Self::Local(_) => {
                let problem = "reload asks a running server: name its admin address with --server";
                Err(Failure::Usage(problem.to_owned()))
            }
            Self::Remote(remote) => remote.reload().await,
        }
    }

    /// The usage of every account over the last `days` UTC days, in total; oldest account first.
    pub(super) async fn usage_of_all(&self, days: u32) -> Result<Vec<AccountUsageDocument>, Failure> {
        let mut accounts = Vec::new();
        let page = |after| UsagePage { days: Bounded(days), after, limit: Bounded::MAX };
        self.pages::<ListUsage>(page, |page| {
            accounts.extend(page.accounts);
            page.next
        })
        .await?;
        Ok(accounts)
    }

    /// The store, unless a server is used.
    pub(super) fn store(&self) -> Option<&dyn FullStore> {
        match self {
            Self::Local(local) => Some(local.store()),
            Self::Remote(_) => None,
        }
    }

    /// Whether the books add up.
    pub(super) async fn verify(&self) -> Result<VerificationDocument, Failure> {
        match self {
            Self::Local(local) => local.verify().await,
            Self::Remote(remote) => remote.verify().await,
        }
    }

    /// All payments that were credited, in the order recorded.
    pub(super) async fn payment_records(&self) -> Result<PaymentRecordsDocument, Failure> {
        let mut records = PaymentRecordsDocument::default();
        let page = |after| PaymentsPage {
            order: None,
            from: None,
            to: None,
            state: None,
            account: None,
            chain_id: None,
            after,
            limit: Bounded::MAX,
        };
        self.pages::<ListPayments>(page, |page| {
            records.append(page);
            records.next.clone()
        })
        .await?;
        Ok(records)
    }

    /// The chains; at least one can be read.
    pub(super) async fn chains(&self) -> Result<Chains, Failure> {
        match self {
            Self::Local(local) => local.chains(),
            Self::Remote(remote) => remote.chains().await,
        }
    }

    /// The payments that arrived on a chain, in all blocks of the request.
    pub(super) async fn arrivals(&self, chain: &str, request: ScanRequest) -> Result<ArrivalsDocument, Failure> {
        match self {
            Self::Local(local) => local.arrivals(chain, request).await,
            Self::Remote(remote) => remote.arrivals(chain, request).await,
        }
    }

    /// Assigns a payment. The document has its details.
    pub(super) async fn assign(&self, chain: &str, assignment: Assignment) -> Result<AssignmentDocument, Failure> {
        match self {
            Self::Local(local) => local.assign(chain, assignment).await,
            Self::Remote(remote) => remote.assign(chain, assignment).await,
        }
    }
}
