//! Accounts imported from another service: the input that an [`ImportStore`](crate::store::ImportStore) receives for
//! each, and the outcome.
//!
//! For every imported account, `balance = Σ ledger − Σ usage` holds from the first moment. `metering-import` reads the
//! files of other services.

use sha3::{Digest, Sha3_256};

use crate::access::account::{Account, AccountId, AgentName, Payer, RateLimits};
use crate::access::email::Email;
use crate::access::email_status::EmailStatus;
use crate::access::hash_kind::HashKind;
use crate::access::key::KeyHash;
use crate::access::key_id::KeyId;
use crate::access::key_terms::KeyTerms;
use crate::chains::address::Address;
use crate::chains::transaction::TxRef;
use crate::clock::{Day, Timestamp};
use crate::money::credits::Credits;
use crate::money::ledger::NewLedgerEntry;
use crate::random::BASE62;
use crate::usage::UsageLine;

/// An account to import.
#[derive(Debug, Clone)]
pub struct ImportedAccount {
    /// Its id. Derived from the source, so importing the same account again finds it.
    pub id: AccountId,
    /// Its name.
    pub agent_name: AgentName,
    /// Its owner's email address.
    pub email: Option<Email>,
    /// Whether the address is verified.
    pub email_status: EmailStatus,
    /// The wallet that paid for it.
    pub payer: Option<Payer>,
    /// Its request caps.
    pub limits: RateLimits,
    /// Its limit on tokens per minute; 0 means no limit.
    pub tokens_per_minute: u32,
    /// Its keys, each after its parent; the first one is the account's first key.
    pub keys: Vec<ImportedKey>,
    /// Its ledger entries, in the order to write them.
    pub entries: Vec<ImportedEntry>,
    /// Its usage, on its first key. At most one per day and line.
    pub usage: Vec<ImportedUsage>,
    /// Transactions that were credited at the source, and must not be credited again.
    pub used_transactions: Vec<UsedTransaction>,
    /// When it was created at the source.
    pub created_at: Timestamp,
    /// When it was revoked there.
    pub revoked_at: Option<Timestamp>,
}

/// A key to import.
#[derive(Debug, Clone)]
pub struct ImportedKey {
    /// Its id; `None` to derive it from its first secret.
    pub id: Option<KeyId>,
    /// The position of its parent in [`ImportedAccount::keys`]; `None` for the first key.
    pub parent: Option<usize>,
    /// Its terms.
    pub terms: KeyTerms,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was reported as leaked.
    pub leaked_at: Option<Timestamp>,
    /// The hashes of its secrets.
    pub secrets: Vec<ImportedSecret>,
}

/// The hash of a secret to import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportedSecret {
    /// The hash.
    pub hash: KeyHash,
    /// The function that made it.
    pub hash_kind: HashKind,
    /// When it stops working, if it was replaced with a grace period.
    pub expires_at: Option<Timestamp>,
}

/// A ledger entry to import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedEntry {
    /// The entry.
    pub entry: NewLedgerEntry,
    /// When it was written at the source.
    pub created_at: Timestamp,
}

/// A daily total to import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedUsage {
    /// The UTC day.
    pub day: Day,
    /// Route, method and source.
    pub line: UsageLine,
    /// How many requests.
    pub calls: u64,
    /// Their charges, minus refunds.
    pub credits_used: Credits,
}

/// A transaction that was credited at the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedTransaction {
    /// The transaction.
    pub tx: TxRef,
    /// When it was credited.
    pub credited_at: Timestamp,
}

/// Whether an import writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportMode {
    /// Writes the accounts, all in one transaction.
    Write,
    /// Writes nothing, and reports the outcome for each account.
    Check,
}

/// The outcome for an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountImported {
    /// It was written, except for conflicting parts.
    Created {
        /// The account.
        account: Account,
        /// The parts that were not imported, because another account has them.
        conflicts: Vec<ImportConflict>,
    },
    /// It was imported before, and nothing changed. The current account.
    AlreadyThere(Account),
    /// Another account has its id; nothing was written.
    IdInUse,
    /// Another account has, or had, one of its key hashes; nothing was written.
    KeyInUse(AccountId),
    /// A key of another account has the id of one of its keys; nothing was written.
    KeyIdInUse(KeyId),
    /// Its amounts add up to more than a store can hold; nothing was written.
    OutOfRange,
}

/// Something of an account that another account has already. The account was imported without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportConflict {
    /// The email address.
    EmailTaken(Email),
    /// The wallet.
    PayerTaken(Address),
    /// The transaction: it was credited to this account before. The credits of the source are kept in the balance.
    TransactionUsed(TxRef, AccountId),
}

impl ImportedAccount {
    /// The id of an account that has none of our form at its `source`, where it is called `account`. The same for every
    /// import of the same account.
    #[must_use]
    pub fn derived_id(source: &str, account: &str) -> AccountId {
        let digest: [u8; 32] = Sha3_256::digest(format!("imported account\0{source}\0{account}").as_bytes()).into();
        let digits = digest.iter().take(20).map(|byte| char::from(BASE62[usize::from(*byte) % BASE62.len()]));
        let id = format!("org_{}", digits.collect::<String>());
        id.parse().expect("20 base-62 digits are an id")
    }

    /// The hashes of all its secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &ImportedSecret> {
        self.keys.iter().flat_map(|key| &key.secrets)
    }
}

impl ImportedKey {
    /// The first key of an account from a source without key terms.
    #[must_use]
    pub fn first(secret: ImportedSecret, created_at: Timestamp) -> Self {
        let terms = KeyTerms::first();
        Self { id: None, parent: None, terms, created_at, leaked_at: None, secrets: vec![secret] }
    }
}
