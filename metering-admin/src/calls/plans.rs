//! Plans: lists, saves and removes them, and puts them on sale.

use metering_core::parameters;
use metering_core::payments::PlanKey;

use super::register::register;
use crate::action::Action;
use crate::call::{Viewer, call};
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

call! {
    /// All plans, on sale or not
    ListPlans("plans") = GET "/admin/plans" in "plans";
    returns(200, "Plans, in the order of display");
    async fn run(admin, _by: Viewer, _none: (), _body: ()) -> PlansDocument {
        Ok(PlansDocument { plans: admin.plans().await? })
    }
}

call! {
    /// Save a plan, replacing the one with the same id and chain
    PutPlan("put_plan") = PUT "/admin/plans" in "plans";
    audit("plan.set", "Set a plan");
    returns(200, "The plan");
    async fn run(admin, by: Action, _none: (), wanted: PlanRequest) -> PlanReply {
        admin.put_plan(by, wanted.plan).await.map(PlanReply)
    }
}

call! {
    /// Put a plan on sale
    ActivatePlan("activate_plan") = POST "/admin/plans/{chain_id}/{id}/activate" in "plans";
    audit("plan.activate", "Put a plan on sale");
    returns(204, "It is on sale") or(NotFound);
    async fn run(admin, by: Action, plan: OfPlan, _body: ReasonRequest) -> () {
        admin.set_plan_active(by, &plan.into(), true).await
    }
}

call! {
    /// Take a plan off sale
    DeactivatePlan("deactivate_plan") = POST "/admin/plans/{chain_id}/{id}/deactivate" in "plans";
    audit("plan.deactivate", "Took a plan off sale");
    returns(204, "It is off sale") or(NotFound);
    async fn run(admin, by: Action, plan: OfPlan, _body: ReasonRequest) -> () {
        admin.set_plan_active(by, &plan.into(), false).await
    }
}

call! {
    /// Remove a plan
    RemovePlan("remove_plan") = POST "/admin/plans/{chain_id}/{id}/remove" in "plans";
    audit("plan.remove", "Removed a plan");
    returns(204, "It is gone") or(NotFound);
    async fn run(admin, by: Action, plan: OfPlan, _body: ReasonRequest) -> () {
        admin.remove_plan(by, &plan.into()).await
    }
}
