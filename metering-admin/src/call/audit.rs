//! What actions are called: in the audit log, and for people.

/// The name of an action in the audit log, and its label for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Audit {
    /// The name: `account.grant`.
    pub name: &'static str,
    /// What was done: "Granted credits".
    pub label: &'static str,
}

/// Actions that are no [`AdminCall`](super::AdminCall): they need files or chains, or the server itself.
pub(crate) const OTHERS: &[Audit] = &[ACCOUNTS_IMPORT, CONFIGURATION_RELOAD, PAYMENT_ASSIGN, PLAN_IMPORT];

/// Accounts of another service were imported.
pub(crate) const ACCOUNTS_IMPORT: Audit = Audit { name: "accounts.import", label: "Imported accounts" };
/// The server read its configuration again.
pub(crate) const CONFIGURATION_RELOAD: Audit =
    Audit { name: "configuration.reload", label: "Reloaded the configuration" };
/// A payment was assigned to an account.
pub(crate) const PAYMENT_ASSIGN: Audit = Audit { name: "payment.assign", label: "Assigned a payment" };
/// Plans were saved from a file.
pub(crate) const PLAN_IMPORT: Audit = Audit { name: "plan.import", label: "Imported plans" };
