//! Who may make a call.

use metering_core::operators::{Actor, Role};

use crate::action::Action;
use crate::error::AdminError;

/// The role that a caller needs, and the data that a caller must send, to make a call.
pub trait Authority: Sized + Send + Sync {
    /// The role that is needed.
    const ROLE: Role;

    /// The authority of a caller of that role.
    ///
    /// # Errors
    /// [`AdminError::Invalid`] when a reason is needed, and this is none.
    fn of(actor: Actor, reason: &str) -> Result<Self, AdminError>;
}

/// Any operator: enough for a call that only reads.
#[derive(Debug, Clone, Copy)]
pub struct Viewer;

impl Authority for Viewer {
    const ROLE: Role = Role::Viewer;

    fn of(_actor: Actor, _reason: &str) -> Result<Self, AdminError> {
        Ok(Self)
    }
}

impl Authority for Action {
    const ROLE: Role = Role::Manager;

    fn of(actor: Actor, reason: &str) -> Result<Self, AdminError> {
        Self::new(actor, reason)
    }
}
