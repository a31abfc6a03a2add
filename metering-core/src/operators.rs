//! Operators: the people who administer a service over HTTP, their rights, and the log of their actions.
//!
//! An action is logged before it is taken and again with its result, so a crash in between leaves a trace.

pub(crate) mod audit;
pub(crate) mod erasure;
pub(crate) mod lists;
pub(crate) mod operator;
pub(crate) mod report;

pub use audit::{Actor, AuditEntry, AuditId, AuditOutcome, AuditQuery, AuditResult, NewAuditEntry};
pub use erasure::{ErasedPart, Erasure, Retention};
pub use lists::{AccountFilter, AccountRunway, AccountState, ListOrder, PaymentFilter, PaymentState, Period};
pub use operator::{
    MalformedOperatorToken, MalformedRole, NewOperator, Operator, OperatorName, OperatorNameError, OperatorToken,
    OperatorTokenHash, OperatorTokenKind, Role,
};
pub use report::{AccountTotal, DayRevenue, DaySales, DayValue, OperationsReport, PlanSales};
