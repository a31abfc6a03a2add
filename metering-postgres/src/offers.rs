//! Authorizations: signed payments that come with requests, their transactions, and the places of these. All of it is
//! written in serialized transactions.

pub(crate) mod authorizations;
pub(crate) mod claims;
pub(crate) mod places;
pub(crate) mod rows;
pub(crate) mod states;
pub(crate) mod submissions;
