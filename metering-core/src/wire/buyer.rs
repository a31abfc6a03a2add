//! Who buys for an account, as receipts name them.

use serde::{Deserialize, Serialize};

use crate::payments::Buyer;
use crate::wire::field::present;

/// The body of `PUT /credits/buyer`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BuyerRequest {
    /// The name of a person or company; null for nobody in particular. Required.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required))]
    pub name: Option<Option<String>>,
    /// The postal address, line by line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Vec<String>>,
    /// The tax number, such as a VAT number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tax_id: Option<String>,
}

/// Who buys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BuyerDocument {
    /// The name.
    pub name: String,
    /// The postal address, line by line; may be empty.
    pub address: Vec<String>,
    /// The tax number, if any.
    pub tax_id: Option<String>,
}

/// The response to `GET /credits/buyer` and `PUT /credits/buyer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BuyerResponse {
    /// The account's id.
    pub org_id: String,
    /// The buyer from now on; null for nobody in particular.
    pub buyer: Option<BuyerDocument>,
}

impl From<&Buyer> for BuyerDocument {
    fn from(buyer: &Buyer) -> Self {
        Self {
            name: buyer.name().to_owned(),
            address: buyer.address().to_vec(),
            tax_id: buyer.tax_id().map(str::to_owned),
        }
    }
}
