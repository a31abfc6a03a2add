//! Reads accounts of other services, and plans their import into a store.
//!
//! [`plan_record`] takes a record of the `accounts` format; [`AgentHubFile`] and [`AgentHubPlanner`] take the SQLite
//! database of a service with the same wire protocol. Each [`PlannedAccount`] has an
//! [`ImportedAccount`](metering_core::imports::ImportedAccount) for
//! [`ImportStore::import_accounts`](metering_core::store::ImportStore::import_accounts), with the balance of the source
//! to the atom. Anything that does not fit is reported as an [`ImportFinding`], never dropped silently.
//!
//! [`read_price_map`] reads the prices of models that LiteLLM publishes, for a [`ModelList`] that a catalogue names.
//!
//! `metering admin import` and `export accounts --with-hashes` use it; `docs/moving-in.md` in the repository describes
//! the formats.
#![deny(missing_docs)]

mod agenthub;
mod amount;
mod finding;
mod key_record;
mod model_list;
mod planned;
mod price_map;
mod record;
mod time;

pub use agenthub::{
    AgentHubFile, AgentHubKey, AgentHubPlanner, AgentHubQuote, AgentHubTransaction, Cell, UsageSign, plan_quote,
};
pub use amount::{Real, RealError};
pub use finding::{ImportFinding, ImportFindingKind};
pub use key_record::{KeyRecordError, keys_as_json, used_as_json};
pub use model_list::{ModelChange, ModelChangeKind, ModelList, PriceChange};
pub use planned::PlannedAccount;
pub use price_map::{PriceMapError, PriceMapImport, PriceMapOptions, PriceRate, read_price_map};
pub use record::{RECORD_FIELDS, RecordError, plan_record};
pub use time::parse_time;
