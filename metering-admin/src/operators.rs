//! Operators: lists, creates and revokes them, gives them new tokens, and finds the one that a token belongs to.

use metering_core::clock::Timestamp;
use metering_core::operators::{NewOperator, Operator, OperatorName, OperatorToken, OperatorTokenHash, Role};
use metering_core::store::FullStore;

use crate::action::Action;
use crate::administration::Administration;
use crate::audited::{Step, Target, json, nothing, requested};
use crate::calls::operators::{CreateOperator, RevokeOperator, RotateOperatorToken};
use crate::error::AdminError;
use crate::wire::OperatorDocument;

impl Administration {
    /// All operators, sorted by name.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn operators(&self) -> Result<Vec<Operator>, AdminError> {
        Ok(self.store.operators().await?)
    }

    /// The operator with this token, unless revoked.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn operator_by_token(&self, token: &OperatorTokenHash) -> Result<Option<Operator>, AdminError> {
        Ok(self.store.operator_by_token(token).await?)
    }

    /// Creates an operator with a token. The store keeps only a hash of the token.
    ///
    /// # Errors
    /// [`AdminError::Conflict`] when there is or was an operator of that name, or when the store fails.
    pub async fn create_operator(
        &self,
        action: &Action,
        name: OperatorName,
        role: Role,
    ) -> Result<(Operator, OperatorToken), AdminError> {
        let token = OperatorToken::generate(&*self.randomness);
        let asked = requested(&serde_json::json!({ "role": role }));
        let target = Target::of::<CreateOperator>(format_args!("operator:{name}"), action).asked(asked);
        let new = NewOperator { name, role, token: token.hash(), created_at: self.clock.now() };
        let create: Step<NewOperator, _, _> = |store, new| {
            Box::pin(async move {
                store.create_operator(new.clone()).await?.ok_or_else(|| {
                    let name = &new.name;
                    AdminError::Conflict(format!("there is or was an operator {name}; names are never used again"))
                })
            })
        };
        Ok((self.audited(target, new, nothing, create, described).await?, token))
    }

    /// Revokes an operator: the token is refused from now on, and sessions end. Revoking again changes nothing.
    ///
    /// # Errors
    /// [`AdminError::NotFound`], or when the store fails.
    pub async fn revoke_operator(&self, action: &Action, name: &OperatorName) -> Result<Operator, AdminError> {
        let target = Target::of::<RevokeOperator>(format_args!("operator:{name}"), action);
        let revoke: Step<(OperatorName, Timestamp), _, _> = |store, (name, now)| {
            Box::pin(async move { store.revoke_operator(name, *now).await?.ok_or_else(|| no_operator(name)) })
        };
        let args = (name.clone(), self.clock.now());
        self.audited(target, args, |store, (name, _)| Box::pin(before(store, name)), revoke, described).await
    }

    /// Gives an operator a new token under the same name and role: the old one is refused from now on, and sessions end.
    ///
    /// # Errors
    /// [`AdminError::NotFound`], [`AdminError::Conflict`] when the operator is revoked, or when the store fails.
    pub async fn rotate_operator_token(
        &self,
        action: &Action,
        name: &OperatorName,
    ) -> Result<(Operator, OperatorToken), AdminError> {
        let token = OperatorToken::generate(&*self.randomness);
        let target = Target::of::<RotateOperatorToken>(format_args!("operator:{name}"), action);
        let rotate: Step<(OperatorName, OperatorTokenHash), _, _> = |store, (name, token)| {
            Box::pin(async move {
                store.rotate_operator_token(name, token).await?.ok_or_else(|| {
                    AdminError::Conflict(format!("operator {name} is revoked; create one with another name"))
                })
            })
        };
        let args = (name.clone(), token.hash());
        let rotated = self.audited(target, args, |store, (name, _)| Box::pin(before(store, name)), rotate, described);
        Ok((rotated.await?, token))
    }
}

/// An operator before an action.
async fn before(store: &dyn FullStore, name: &OperatorName) -> Result<Option<String>, AdminError> {
    let found = store.operators().await?.into_iter().find(|operator| operator.name == *name);
    found.as_ref().map(described).ok_or_else(|| no_operator(name))
}

fn no_operator(name: &OperatorName) -> AdminError {
    AdminError::NotFound(format!("no operator {name}"))
}

fn described(operator: &Operator) -> Option<String> {
    json(&OperatorDocument::from(operator))
}
