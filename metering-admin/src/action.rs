//! An action: who does something, and why.

use metering_core::operators::Actor;

use crate::error::AdminError;
use crate::payments::Reason;

/// The actor of an action, and the reason.
///
/// ```
/// use metering_admin::Action;
/// use metering_core::operators::Actor;
///
/// let jo = || Actor::Operator("jo".parse().unwrap());
/// assert_eq!(Action::new(jo(), " Ticket 311 ")?.reason(), "Ticket 311");
/// assert!(Action::new(jo(), "").is_err());
/// # Ok::<(), metering_admin::AdminError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Action {
    actor: Actor,
    reason: String,
}

impl Action {
    /// An action with a reason. Only the command line may leave it empty.
    ///
    /// # Errors
    /// [`AdminError::Invalid`] when the reason is missing, too long, or not one line.
    pub fn new(actor: Actor, reason: &str) -> Result<Self, AdminError> {
        let reason = reason.trim();
        if reason.is_empty() && matches!(actor, Actor::CommandLine(_)) {
            return Ok(Self { actor, reason: String::new() });
        }
        Ok(Self { actor, reason: one_line("reason", reason)? })
    }

    /// Who.
    #[must_use]
    pub const fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Why.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// Checks a text for the ledger or the audit log.
pub(crate) fn one_line(field: &str, text: &str) -> Result<String, AdminError> {
    let checked: Result<Reason, _> = text.parse();
    let checked = checked.map_err(|error| AdminError::Invalid(format!("{field} {error}")))?;
    Ok(checked.as_str().to_owned())
}
