//! Authorizations: signed payments that come with requests, the claims of those who settle them, the transactions that
//! execute them, and the places of these.

mod stored_place;

pub mod authorizations;
pub mod claims;
pub mod parts;
pub mod places;
pub mod rows;
pub mod states;
pub mod submissions;
