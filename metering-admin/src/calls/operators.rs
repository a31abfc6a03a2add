//! Operators: lists, creates and revokes them, and gives them new tokens.

use http::Method;
use metering_core::operators::{OperatorName, Role};
use metering_core::wire::ErrorCode;

use super::{NOT_FOUND, register};
use crate::action::Action;
use crate::administration::Administration;
use crate::call::{Audit, Call, Nothing, Viewer, parameters};
use crate::error::{AdminError, wrong};
use crate::wire::{CreateOperatorRequest, CreatedOperatorDocument, OperatorDocument, OperatorsDocument, ReasonRequest};

register!(ListOperators, CreateOperator, RotateOperatorToken, RevokeOperator);

parameters! {
    /// An operator.
    OfOperator {
        /// The operator's name
        name: OperatorName,
    }
}

/// All operators, sorted by name.
#[derive(Debug)]
pub struct ListOperators;

impl Call for ListOperators {
    const ID: &str = "operators";
    const METHOD: Method = Method::GET;
    const PATH: &str = "/admin/operators";
    const TAG: &str = "operators";
    const SUMMARY: &str = "All operators, sorted by name";
    const SUCCESS: (u16, &str) = (200, "Operators");
    type By = Viewer;
    type Parameters = ();
    type Body = Nothing;
    type Reply = OperatorsDocument;

    async fn run(
        admin: &Administration,
        _by: &Viewer,
        (): (),
        _body: Nothing,
    ) -> Result<OperatorsDocument, AdminError> {
        Ok(OperatorsDocument { operators: admin.operators().await?.iter().map(OperatorDocument::from).collect() })
    }
}

/// Create an operator.
#[derive(Debug)]
pub struct CreateOperator;

impl Call for CreateOperator {
    const ID: &str = "create_operator";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/operators";
    const TAG: &str = "operators";
    const SUMMARY: &str = "Create an operator";
    const DESCRIPTION: &str = "The response has the operator's token. It is in no other response.";
    const AUDIT: Option<Audit> = Some(Audit { name: "operator.create", label: "Created an operator" });
    const SUCCESS: (u16, &str) = (201, "The operator and the token");
    const REFUSALS: &[(ErrorCode, &str)] = &[(ErrorCode::Conflict, "there is or was an operator of that name")];
    type By = Action;
    type Parameters = ();
    type Body = CreateOperatorRequest;
    type Reply = CreatedOperatorDocument;

    async fn run(
        admin: &Administration,
        by: &Action,
        (): (),
        wanted: CreateOperatorRequest,
    ) -> Result<CreatedOperatorDocument, AdminError> {
        let name: OperatorName = wanted.name.trim().parse().map_err(|error| wrong("name", error))?;
        let role: Role = wanted.role.parse().map_err(|error| wrong("role", error))?;
        let (operator, token) = admin.create_operator(by, name, role).await?;
        Ok(CreatedOperatorDocument { token: token.into(), operator: (&operator).into() })
    }
}

/// Give an operator a new token.
#[derive(Debug)]
pub struct RotateOperatorToken;

impl Call for RotateOperatorToken {
    const ID: &str = "rotate_operator_token";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/operators/{name}/rotate-token";
    const TAG: &str = "operators";
    const SUMMARY: &str = "Give an operator a new token";
    const DESCRIPTION: &str = "The old token is refused from now on, and the operator's sessions end. The response has the new \
        token. It is in no other response.";
    const AUDIT: Option<Audit> = Some(Audit { name: "operator.rotate_token", label: "Gave an operator a new token" });
    const SUCCESS: (u16, &str) = (200, "The operator and the new token");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND, (ErrorCode::Conflict, "the operator is revoked")];
    type By = Action;
    type Parameters = OfOperator;
    type Body = ReasonRequest;
    type Reply = CreatedOperatorDocument;

    async fn run(
        admin: &Administration,
        by: &Action,
        of: OfOperator,
        _body: ReasonRequest,
    ) -> Result<CreatedOperatorDocument, AdminError> {
        let (operator, token) = admin.rotate_operator_token(by, &of.name).await?;
        Ok(CreatedOperatorDocument { token: token.into(), operator: (&operator).into() })
    }
}

/// Revoke an operator.
#[derive(Debug)]
pub struct RevokeOperator;

impl Call for RevokeOperator {
    const ID: &str = "revoke_operator";
    const METHOD: Method = Method::POST;
    const PATH: &str = "/admin/operators/{name}/revoke";
    const TAG: &str = "operators";
    const SUMMARY: &str = "Revoke an operator";
    const DESCRIPTION: &str =
        "The token is refused from now on, and the operator's sessions end. Revoking again changes nothing.";
    const AUDIT: Option<Audit> = Some(Audit { name: "operator.revoke", label: "Revoked an operator" });
    const SUCCESS: (u16, &str) = (200, "The operator afterwards");
    const REFUSALS: &[(ErrorCode, &str)] = &[NOT_FOUND];
    type By = Action;
    type Parameters = OfOperator;
    type Body = ReasonRequest;
    type Reply = OperatorDocument;

    async fn run(
        admin: &Administration,
        by: &Action,
        of: OfOperator,
        _body: ReasonRequest,
    ) -> Result<OperatorDocument, AdminError> {
        Ok(OperatorDocument::from(&admin.revoke_operator(by, &of.name).await?))
    }
}
