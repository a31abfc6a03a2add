//! Why a script failed.

use std::any::Any;

use metering_core::StoreError;

/// Why a script failed.
#[derive(Debug)]
pub enum Fault {
    /// An error of the storage contract. A retry does not help.
    Store(StoreError),
    /// The driver's own error, of a type that the backend knows. It may run the script again.
    Driver(Box<dyn Any + Send>),
}

/// `Result` within a script.
pub type Result<T, E = Fault> = std::result::Result<T, E>;

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The error for stored data that is invalid. `problem` must not repeat a secret.
pub(crate) fn corrupt(problem: impl std::fmt::Display) -> Fault {
    Fault::Store(StoreError::Corrupt(problem.to_string()))
}
