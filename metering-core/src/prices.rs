//! Price versions: the catalogues that were, are or will be in force, so a past charge can be traced to its price list,
//! and all nodes of a store switch to a new one at the same time.
//!
//! A version comes from the file that a server's configuration names, or was applied by an operator for a time. Once an
//! applied version is in force, the store's catalogue applies on all nodes, and files are no longer applied.

mod history;
pub(crate) mod number;
mod version;

pub use history::PriceHistory;
pub use number::PriceNumber;
pub use version::{CatalogueHash, NewPriceVersion, PriceRecorded, PriceVersion};
