//! Plans: lists, saves and removes them, and puts them on sale.

use http::Method;
use metering_core::payments::PlanKey;
use metering_core::wire::ErrorCode;

use super::{NOT_FOUND, register};
use crate::action::Action;
use crate::administration::Administration;
use crate::call::{Audit, Call, Nothing, Viewer, parameters};
use crate::error::AdminError;
use crate::wire::{PlanReply, PlanRequest, PlansDocument, ReasonRequest};

register!(ListPlans, PutPlan, ActivatePlan, DeactivatePlan, RemovePlan);

parameters! {
    /// A plan.
    OfPlan {
        /// The chain's id
        chain_id: u64,
        /// The plan's id
        id: String,
    }
}

impl From<PlanKey> for OfPlan {
    fn from(PlanKey { id, chain_id }: PlanKey) -> Self {
        Self { chain_id, id }
    }
}

impl From<OfPlan> for PlanKey {
    fn from(OfPlan { chain_id, id }: OfPlan) -> Self {
        Self { id, chain_id }
    }
}

/// All plans, on sale or not.
#[derive(Debug)]
pub struct ListPlans;

impl Call for ListPlans {
    const ID: &str = "plans";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/plans";
    const TAG: &str = "plans";
    const SUMMARY: &str = "All plans, on sale or not";
    const SUCCESS: (u16, &str) = (200, "Plans, in the order of display");
    type By = Viewer;
    type Parameters = ();
    type Body = Nothing;
    type Reply = PlansDocument;

    async fn run(admin: &Administration, _by: &Viewer, (): (), _body: Nothing) -> Result<PlansDocument, AdminError> {
        Ok(PlansDocument { plans: admin.plans().await? })
    }
}

/// Save a plan, in place of the one with the same id and chain.
#[derive(Debug)]
pub struct PutPlan;

impl Call for PutPlan {
    const ID: &str = "put_plan";
    const METHOD: Method = Method::PUT;
    const PATH: &str = "/admin/plans";
    const TAG: &str = "plans";
    const SUMMARY: &str = "Save a plan, in place of the one with the same id and chain";
    const AUDIT: Option<Audit> = Some(Audit { name: "plan.set", label: "Set a plan" });
    const SUCCESS: (u16, &str) = (200, "The plan");
    type By = Action;
    type Parameters = ();
    type Body = PlanRequest;
    type Reply = PlanReply;

    async fn run(admin: &Administration, by: &Action, (): (), wanted: PlanRequest) -> Result<PlanReply, AdminError> {
        admin.put_plan(by, wanted.plan).await.map(PlanReply)
    }
}

/// Put a plan on sale.
#[derive(Debug)]
pub struct ActivatePlan;

impl Call for ActivatePlan {
    const ID: &str = "activate_plan";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/plans/{chain_id}/{id}/activate";
    const TAG: &str = "plans";
    const SUMMARY: &str = "Put a plan on sale";
    const AUDIT: Option<Audit> = Some(Audit { name: "plan.activate", label: "Put a plan on sale" });
    const SUCCESS: (u16, &str) = (204, "It is on sale");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND];
    type By = Action;
    type Parameters = OfPlan;
    type Body = ReasonRequest;
    type Reply = Nothing;

    async fn run(
        admin: &Administration,
        by: &Action,
        plan: OfPlan,
        _body: ReasonRequest,
    ) -> Result<Nothing, AdminError> {
        admin.set_plan_active(by, &plan.into(), true).await.map(|()| Nothing)
    }
}

/// Take a plan off sale.
#[derive(Debug)]
pub struct DeactivatePlan;

impl Call for DeactivatePlan {
    const ID: &str = "deactivate_plan";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/plans/{chain_id}/{id}/deactivate";
    const TAG: &str = "plans";
    const SUMMARY: &str = "Take a plan off sale";
    const AUDIT: Option<Audit> = Some(Audit { name: "plan.deactivate", label: "Took a plan off sale" });
    const SUCCESS: (u16, &str) = (204, "It is off sale");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND];
    type By = Action;
    type Parameters = OfPlan;
    type Body = ReasonRequest;
    type Reply = Nothing;

    async fn run(
        admin: &Administration,
        by: &Action,
        plan: OfPlan,
        _body: ReasonRequest,
    ) -> Result<Nothing, AdminError> {
        admin.set_plan_active(by, &plan.into(), false).await.map(|()| Nothing)
    }
}

/// Remove a plan.
#[derive(Debug)]
pub struct RemovePlan;

impl Call for RemovePlan {
    const ID: &str = "remove_plan";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/plans/{chain_id}/{id}/remove";
    const TAG: &str = "plans";
    const SUMMARY: &str = "Remove a plan";
    const AUDIT: Option<Audit> = Some(Audit { name: "plan.remove", label: "Removed a plan" });
    const SUCCESS: (u16, &str) = (204, "It is gone");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND];
    type By = Action;
    type Parameters = OfPlan;
    type Body = ReasonRequest;
    type Reply = Nothing;

    async fn run(
        admin: &Administration,
        by: &Action,
        plan: OfPlan,
        _body: ReasonRequest,
    ) -> Result<Nothing, AdminError> {
        admin.remove_plan(by, &plan.into()).await.map(|()| Nothing)
    }
}
