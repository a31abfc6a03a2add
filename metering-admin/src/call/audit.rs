//! Names of actions: in the audit log, and for people.

/// The name of an action in the audit log, and its label for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Audit {
    /// The name: `account.grant`.
    pub name: &'static str,
    /// The action in the past tense: "Granted credits".
    pub label: &'static str,
}

/// Actions that are not an [`AdminCall`](super::AdminCall): they need files or chains, or the server itself.
pub(crate) const OTHERS: &[Audit] = &[
    ACCOUNTS_IMPORT,
    CONFIGURATION_RELOAD,
    LOG_BEGIN,
    LOG_PRUNE,
    PAYMENT_ASSIGN,
    PAYMENT_CREDIT,
    PAYMENT_RESTORE,
    PAYMENT_REVERSE,
    PLAN_IMPORT,
];

/// Accounts of another service were imported.
pub(crate) const ACCOUNTS_IMPORT: Audit = Audit { name: "accounts.import", label: "Imported accounts" };
/// The server read its configuration again.
pub(crate) const CONFIGURATION_RELOAD: Audit =
    Audit { name: "configuration.reload", label: "Reloaded the configuration" };
/// An epoch of the log began.
pub(crate) const LOG_BEGIN: Audit = Audit { name: "log.begin", label: "Began an epoch of the log" };
/// Old entries of the log were deleted.
pub(crate) const LOG_PRUNE: Audit = Audit { name: "log.prune", label: "Pruned the log" };
/// A payment was assigned to an account.
pub(crate) const PAYMENT_ASSIGN: Audit = Audit { name: "payment.assign", label: "Assigned a payment" };
/// A processor's payment was credited. No operator does this or the next two: the service logs them.
const PAYMENT_CREDIT: Audit = Audit { name: "payment.credit", label: "Credited a processor's payment" };
/// A refund or a dispute of it ended.
const PAYMENT_RESTORE: Audit = Audit { name: "payment.restore", label: "Restored a processor's payment" };
/// It was refunded or disputed.
const PAYMENT_REVERSE: Audit = Audit { name: "payment.reverse", label: "Reversed a processor's payment" };
/// Plans were saved from a file.
pub(crate) const PLAN_IMPORT: Audit = Audit { name: "plan.import", label: "Imported plans" };
