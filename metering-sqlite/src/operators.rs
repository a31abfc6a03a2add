//! Operators, the audit log of what they did, price versions, and the report about the business.

pub(crate) mod audit;
pub(crate) mod operator;
pub(crate) mod prices;
pub(crate) mod report;
