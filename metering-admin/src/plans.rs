//! Plans: lists, saves and removes them, and puts them on sale.

use metering_core::payments::{Plan, PlanKey};
use metering_core::store::FullStore;

use crate::action::Action;
use crate::administration::Administration;
use crate::audited::{Step, Target, json, requested};
use crate::call::PLAN_IMPORT;
use crate::calls::plans::{ActivatePlan, DeactivatePlan, PutPlan, RemovePlan};
use crate::error::AdminError;

impl Administration {
    /// All plans, on sale or not, in the order of display.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn plans(&self) -> Result<Vec<Plan>, AdminError> {
        Ok(self.store.plans().await?)
    }

    /// Saves a plan, replacing the one with the same id and chain.
    ///
    /// # Errors
    /// [`AdminError::Invalid`], [`AdminError::Forbidden`] for a recipient that may not be named, or when the store fails.
    pub async fn put_plan(&self, action: &Action, plan: Plan) -> Result<Plan, AdminError> {
        plan.validate().map_err(|error| AdminError::Invalid(error.to_string()))?;
        let target = Target::of::<PutPlan>(subject_of(&[plan.key()]), action).asked(requested(&plan));
        let is_allowed = match (&self.recipients, plan.recipient) {
            (Some(allowed), Some(recipient)) => allowed.contains(&(plan.chain_id, recipient)),
            _ => true,
        };
        let before: Step<(Plan, bool), _, _> = |store, (plan, is_allowed)| {
            Box::pin(async move {
                let before = find(store, &plan.key()).await?;
                if *is_allowed || before.as_ref().is_some_and(|before| before.recipient == plan.recipient) {
                    return Ok(before.as_ref().and_then(json));
                }
                let message = "Another recipient can be set only on the store itself, with `metering admin plan set`.";
                Err(AdminError::Forbidden(message.to_owned()))
            })
        };
        let put: Step<(Plan, bool), _, _> = |store, (plan, _)| {
            Box::pin(async move {
                store.put_plans(vec![plan.clone()]).await?;
                Ok(plan.clone())
            })
        };
        self.audited(target, (plan, is_allowed), before, put, json).await
    }

    /// Saves several plans, all or none, replacing those with the same ids and chains.
    ///
    /// # Errors
    /// As [`Administration::put_plan`].
    pub async fn put_plans(&self, action: &Action, plans: Vec<Plan>) -> Result<usize, AdminError> {
        for plan in &plans {
            plan.validate().map_err(|error| AdminError::Invalid(error.to_string()))?;
        }
        let keys: Vec<PlanKey> = plans.iter().map(Plan::key).collect();
        let target = Target::named(PLAN_IMPORT, subject_of(&keys), action).asked(requested(&plans));
        let before: Step<(Vec<Plan>, Vec<PlanKey>), _, _> = |store, (_, keys)| {
            Box::pin(async move {
                let plans = store.plans().await?.into_iter().filter(|plan| keys.contains(&plan.key()));
                Ok(json(&plans.collect::<Vec<_>>()))
            })
        };
        let put: Step<(Vec<Plan>, Vec<PlanKey>), _, _> = |store, (plans, _)| {
            Box::pin(async move {
                store.put_plans(plans.clone()).await?;
                Ok::<_, AdminError>(plans.clone())
            })
        };
        Ok(self.audited(target, (plans, keys), before, put, json).await?.len())
    }

    /// Puts a plan on sale, or takes it off.
    ///
    /// # Errors
    /// [`AdminError::NoSuchPlan`], or when the store fails.
    pub async fn set_plan_active(&self, action: &Action, key: &PlanKey, active: bool) -> Result<(), AdminError> {
        let subject = subject_of(std::slice::from_ref(key));
        let target = if active {
            Target::of::<ActivatePlan>(subject, action)
        } else {
            Target::of::<DeactivatePlan>(subject, action)
        };
        let set: Step<(PlanKey, bool), _, _> = |store, (key, active)| {
            Box::pin(async move {
                store.set_plan_active(key, *active).await?;
                find(store, key).await?.ok_or_else(|| no_plan(key))
            })
        };
        let args = (key.clone(), active);
        self.audited(target, args, |store, (key, _)| Box::pin(before(store, key)), set, json).await.map(drop)
    }

    /// Removes a plan. Quotes that name it can still be paid.
    ///
    /// # Errors
    /// [`AdminError::NoSuchPlan`], or when the store fails.
    pub async fn remove_plan(&self, action: &Action, key: &PlanKey) -> Result<(), AdminError> {
        let target = Target::of::<RemovePlan>(subject_of(std::slice::from_ref(key)), action);
        let remove: Step<PlanKey, _, _> = |store, key| {
            Box::pin(async move { if store.remove_plan(key).await? { Ok(()) } else { Err(no_plan(key)) } })
        };
        self.audited(target, key.clone(), |store, key| Box::pin(before(store, key)), remove, |()| None).await
    }
}

async fn find(store: &dyn FullStore, key: &PlanKey) -> Result<Option<Plan>, AdminError> {
    Ok(store.plans().await?.into_iter().find(|plan| plan.key() == *key))
}

/// A plan before an action.
async fn before(store: &dyn FullStore, key: &PlanKey) -> Result<Option<String>, AdminError> {
    Ok(find(store, key).await?.as_ref().and_then(json))
}

/// The plans as the subject of an entry: `plan:ID@CHAIN_ID`, separated by spaces.
fn subject_of(keys: &[PlanKey]) -> String {
    let names: Vec<String> = keys.iter().map(|key| format!("plan:{}@{}", key.id, key.chain_id)).collect();
    names.join(" ")
}

fn no_plan(key: &PlanKey) -> AdminError {
    AdminError::NoSuchPlan(key.clone())
}
