//! Moving in from another service, and out again: accounts with their key hashes, balances and used transactions.
//!
//! The rules only: programs read the files, and stores write what [`ImportStore`](crate::store::ImportStore) is given.
//! For every imported account, `balance = Σ ledger − Σ usage` holds from the first moment, and equals the balance at
//! the source to the atom. Anything that does not fit is reported as an [`ImportFinding`], never dropped silently.

pub(crate) mod account;
mod agenthub;
mod amount;
mod finding;
mod key_record;
mod planned;
mod record;
mod time;

pub use account::{
    AccountImported, ImportConflict, ImportMode, ImportedAccount, ImportedEntry, ImportedKey, ImportedSecret,
    ImportedUsage, OPENING_ROUTE, UsedTransaction,
};
pub use agenthub::{AgentHubKey, AgentHubPlanner, AgentHubQuote, AgentHubTransaction, Cell, UsageSign, plan_quote};
pub use amount::{Real, RealError};
pub use finding::{ImportFinding, ImportFindingKind};
pub use key_record::{KeyRecordError, keys_as_json, used_as_json};
pub use planned::PlannedAccount;
pub use record::{RECORD_FIELDS, RecordError, plan_record};
pub use time::parse_time;
