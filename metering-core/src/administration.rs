//! Administration: the use cases of operators, over HTTP and on the command line.

pub(crate) mod error;
pub mod payments;

pub use error::AdminError;
