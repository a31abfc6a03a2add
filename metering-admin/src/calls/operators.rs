//! Operators: lists, creates and revokes them, and gives them new tokens.

use metering_core::operators::{OperatorName, Role};
use metering_core::parameters;

use super::register::register;
use crate::action::Action;
use crate::call::{Viewer, call};
use crate::error::wrong;
use crate::wire::{CreateOperatorRequest, CreatedOperatorDocument, OperatorDocument, OperatorsDocument, ReasonRequest};

register!(ListOperators, CreateOperator, RotateOperatorToken, RevokeOperator);

parameters! {
    /// An operator.
    OfOperator {
        /// The operator's name
        name: OperatorName,
    }
}

call! {
    /// All operators, sorted by name
    ListOperators("operators") = GET "/admin/operators" in "operators";
    returns(200, "Operators");
    async fn run(admin, _by: Viewer, _none: (), _body: ()) -> OperatorsDocument {
        Ok(OperatorsDocument { operators: admin.operators().await?.iter().map(OperatorDocument::from).collect() })
    }
}

call! {
    /// Create an operator
    ///
    /// The response has the operator's token. It is in no other response.
    CreateOperator("create_operator") = POST "/admin/operators" in "operators";
    audit("operator.create", "Created an operator");
    returns(201, "The operator and the token") or(Conflict: "there is or was an operator of that name");
    async fn run(admin, by: Action, _none: (), wanted: CreateOperatorRequest) -> CreatedOperatorDocument {
        let name: OperatorName = wanted.name.trim().parse().map_err(|error| wrong("name", error))?;
        let role: Role = wanted.role.parse().map_err(|error| wrong("role", error))?;
        let (operator, token) = admin.create_operator(by, name, role).await?;
        Ok(CreatedOperatorDocument { token: token.into(), operator: (&operator).into() })
    }
}

call! {
    /// Give an operator a new token
    ///
    /// The old token is refused from now on, and the operator's sessions end. The response has the new token. It is in
    /// no other response.
    RotateOperatorToken("rotate_operator_token") = POST "/admin/operators/{name}/rotate-token" in "operators";
    audit("operator.rotate_token", "Gave an operator a new token");
    returns(200, "The operator and the new token") or(NotFound, Conflict: "the operator is revoked");
    async fn run(admin, by: Action, of: OfOperator, _body: ReasonRequest) -> CreatedOperatorDocument {
        let (operator, token) = admin.rotate_operator_token(by, &of.name).await?;
        Ok(CreatedOperatorDocument { token: token.into(), operator: (&operator).into() })
    }
}

call! {
    /// Revoke an operator
    ///
    /// The token is refused from now on, and the operator's sessions end. Revoking again changes nothing.
    RevokeOperator("revoke_operator") = POST "/admin/operators/{name}/revoke" in "operators";
    audit("operator.revoke", "Revoked an operator");
    returns(200, "The operator afterwards") or(NotFound);
    async fn run(admin, by: Action, of: OfOperator, _body: ReasonRequest) -> OperatorDocument {
        Ok(OperatorDocument::from(&admin.revoke_operator(by, &of.name).await?))
    }
}
