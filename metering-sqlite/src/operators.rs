//! Operators, the audit log of what they did, and the report about the business.

pub(crate) mod audit;
pub(crate) mod operator;
pub(crate) mod report;
