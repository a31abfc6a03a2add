//! Operators, and what every action needs.

use metering_core::operators::{Operator, OperatorToken};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::wire::document::document;

/// The body of an action that needs nothing but a reason.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReasonRequest {
    /// Why, for the audit log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

document! {
    /// An operator.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub struct OperatorDocument from operator: &Operator;

    /// The name. Names are never reused.
    name: String = operator.name.to_string(),
    /// `viewer` (reads everything) or `manager` (takes every action too).
    role: String = operator.role.as_str().to_owned(),
    /// `active` or `revoked`.
    status: String = if operator.revoked_at.is_some() { "revoked" } else { "active" }.to_owned(),
    /// When the operator was created, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    created_at: String = operator.created_at.to_string(),
    /// Since when the token is refused, if it is, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    revoked_at: Option<String> = operator.revoked_at.map(|at| at.to_string()),
}

/// All operators.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OperatorsDocument {
    /// The operators, sorted by name.
    pub operators: Vec<OperatorDocument>,
}

/// An operator to create.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateOperatorRequest {
    /// The name: 1 to 64 letters, digits, dots, hyphens, underscores or at signs.
    pub name: String,
    /// `viewer` or `manager`.
    pub role: String,
    /// Why, for the audit log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// An operator with a new token, which is in no other response.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreatedOperatorDocument {
    /// The token to sign in with.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub token: IssuedToken,
    /// The operator.
    pub operator: OperatorDocument,
}

/// An operator's token in the response that issues it. Its debug output does not show the token.
#[derive(Debug, Clone)]
pub struct IssuedToken(OperatorToken);

impl IssuedToken {
    /// The token.
    #[must_use]
    pub fn token(&self) -> &OperatorToken {
        &self.0
    }
}

impl From<OperatorToken> for IssuedToken {
    fn from(token: OperatorToken) -> Self {
        Self(token)
    }
}

impl Serialize for IssuedToken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose())
    }
}

impl<'de> Deserialize<'de> for IssuedToken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Zeroizing::new(String::deserialize(deserializer)?);
        // Does not quote the text, which may be a token.
        OperatorToken::parse(&text).map(Self).map_err(|_| serde::de::Error::custom("not an operator's token"))
    }
}
