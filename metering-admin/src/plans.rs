//! Plans: lists, saves and removes them, and puts them on sale.

use metering_core::payments::{Plan, PlanKey};

use crate::action::Action;
use crate::administration::Administration;
use crate::audited::{Target, json, requested};
use crate::call::{Call, PLAN_IMPORT};
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

    /// Saves a plan, in place of the one with the same id and chain.
    ///
    /// # Errors
    /// [`AdminError::Invalid`], [`AdminError::Forbidden`] for a recipient that may not be named, or when the store fails.
    pub async fn put_plan(&self, action: &Action, plan: Plan) -> Result<Plan, AdminError> {
        self.check_recipient(&plan).await?;
        plan.validate().map_err(|error| AdminError::Invalid(error.to_string()))?;
        let asked = requested(&plan);
        let target = self.plan_target::<PutPlan>(&plan.key(), action).await?.asked(asked);
        let taken = async {
            self.store.put_plans(vec![plan.clone()]).await?;
            Ok(plan.clone())
        };
        self.audited(target, taken, json).await
    }

    async fn check_recipient(&self, plan: &Plan) -> Result<(), AdminError> {
        let (Some(allowed), Some(recipient)) = (&self.recipients, plan.recipient) else { return Ok(()) };
        let known = allowed.contains(&(plan.chain_id, recipient));
        if known || self.plan(&plan.key()).await?.is_some_and(|before| before.recipient == Some(recipient)) {
            return Ok(());
        }
        let message = "Another recipient can be set only on the store itself, with `metering admin plan set`.";
        Err(AdminError::Forbidden(message.to_owned()))
    }

    /// Saves several plans, all or none, in place of those with the same ids and chains.
    ///
    /// # Errors
    /// As [`Administration::put_plan`].
    pub async fn put_plans(&self, action: &Action, plans: Vec<Plan>) -> Result<usize, AdminError> {
        for plan in &plans {
            plan.validate().map_err(|error| AdminError::Invalid(error.to_string()))?;
        }
        let keys: Vec<PlanKey> = plans.iter().map(Plan::key).collect();
        let before: Vec<Plan> = self.plans().await?.into_iter().filter(|plan| keys.contains(&plan.key())).collect();
        let (request, before) = (requested(&plans), json(&before));
        let target = Target::named(PLAN_IMPORT, subject_of(&keys), action).asked(request).before(before);
        let after = json(&plans);
        let count = plans.len();
        let taken = async {
            self.store.put_plans(plans).await?;
            Ok(count)
        };
        self.audited(target, taken, |_| after).await
    }

    /// Puts a plan on sale, or takes it off.
    ///
    /// # Errors
    /// [`AdminError::NoSuchPlan`], or when the store fails.
    pub async fn set_plan_active(&self, action: &Action, key: &PlanKey, active: bool) -> Result<(), AdminError> {
        let target = if active {
            self.plan_target::<ActivatePlan>(key, action).await?
        } else {
            self.plan_target::<DeactivatePlan>(key, action).await?
        };
        let after = self.plan(key).await?.map(|plan| Plan { active, ..plan });
        let taken = async {
            let known = self.store.set_plan_active(key, active).await?;
            if known { Ok(()) } else { Err(no_plan(key)) }
        };
        self.audited(target, taken, |()| after.as_ref().and_then(json)).await
    }

    /// Removes a plan. Quotes that name it can still be paid.
    ///
    /// # Errors
    /// [`AdminError::NoSuchPlan`], or when the store fails.
    pub async fn remove_plan(&self, action: &Action, key: &PlanKey) -> Result<(), AdminError> {
        let target = self.plan_target::<RemovePlan>(key, action).await?;
        let taken = async {
            let known = self.store.remove_plan(key).await?;
            if known { Ok(()) } else { Err(no_plan(key)) }
        };
        self.audited(target, taken, |()| None).await
    }

    async fn plan_target<'a, C: Call>(&self, key: &PlanKey, action: &'a Action) -> Result<Target<'a>, AdminError> {
        let before = self.plan(key).await?.as_ref().and_then(json);
        Ok(Target::of::<C>(subject_of(std::slice::from_ref(key)), action).before(before))
    }

    async fn plan(&self, key: &PlanKey) -> Result<Option<Plan>, AdminError> {
        Ok(self.plans().await?.into_iter().find(|plan| plan.key() == *key))
    }
}

/// The plans as the subject of an entry: `plan:ID@CHAIN_ID`, separated by spaces.
fn subject_of(keys: &[PlanKey]) -> String {
    let names: Vec<String> = keys.iter().map(|key| format!("plan:{}@{}", key.id, key.chain_id)).collect();
    names.join(" ")
}

fn no_plan(key: &PlanKey) -> AdminError {
    AdminError::NoSuchPlan(key.clone())
}
