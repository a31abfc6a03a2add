//! The part of the storage contract for operators: operators, the audit log, and the report about the business.

use async_trait::async_trait;

use crate::access::account::{Account, AccountId};
use crate::access::issued_key::Key;
use crate::access::key_id::KeyId;
use crate::chains::transaction::TxHash;
use crate::clock::Timestamp;
use crate::events::delivery::Delivery;
use crate::money::ledger::LedgerEntry;
use crate::operators::audit::{AuditEntry, AuditId, AuditOutcome, AuditQuery, NewAuditEntry};
use crate::operators::erasure::{Erasure, Retention};
use crate::operators::lists::{AccountFilter, AccountRunway, PaymentFilter, Period};
use crate::operators::operator::{NewOperator, Operator, OperatorName, OperatorTokenHash};
use crate::operators::report::OperationsReport;
use crate::payments::issued_receipt::ConsecutiveNumber;
use crate::payments::payment::PaymentRecord;
use crate::payments::receipt::ReceiptNumber;
use crate::store::{Cursor, Page, Store, StoreError};
use crate::usage::DayRange;

/// Stores operators and the audit log, and makes the report about the business.
///
/// As in [`Store`], each method is one atomic operation, and expected outcomes are values.
///
/// ```
/// use metering_core::operators::{NewOperator, OperatorToken, Role};
/// use metering_core::store::OperatorStore;
/// use metering_core::{Clock, SystemClock, SystemRandomness};
/// use metering_sqlite::SqliteStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = SqliteStore::in_memory()?;
/// let token = OperatorToken::generate(&SystemRandomness);
/// let (name, created_at) = ("jo".parse()?, SystemClock.now());
/// store.create_operator(NewOperator { name, role: Role::Viewer, token: token.hash(), created_at }).await?;
/// assert_eq!(store.operator_by_token(&token.hash()).await?.unwrap().role, Role::Viewer);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait OperatorStore: Store {
    /// Creates an operator. `None`, and nothing changes, when an operator has that name, revoked or not. A token that
    /// an operator has or had when revoked is an error.
    async fn create_operator(&self, operator: NewOperator) -> Result<Option<Operator>, StoreError>;

    /// The operator with that token, unless revoked.
    async fn operator_by_token(&self, token: &OperatorTokenHash) -> Result<Option<Operator>, StoreError>;

    /// All operators, sorted by the bytes of their names, revoked ones too.
    async fn operators(&self) -> Result<Vec<Operator>, StoreError>;

    /// Revokes an operator. A second call changes nothing and returns the operator. `None` when there is no such
    /// operator.
    async fn revoke_operator(&self, name: &OperatorName, now: Timestamp) -> Result<Option<Operator>, StoreError>;

    /// Gives an operator another token; the old one stops working. `None`, and nothing changes, when there is no such
    /// operator, or the operator is revoked. A token that is in use is an error.
    async fn rotate_operator_token(
        &self,
        name: &OperatorName,
        token: &OperatorTokenHash,
    ) -> Result<Option<Operator>, StoreError>;

    /// Logs an action with its outcome, in the action's own transaction
    /// ([`FullStore::transact`](crate::FullStore::transact)). Ids increase with time.
    async fn log_action(&self, entry: NewAuditEntry, outcome: AuditOutcome) -> Result<AuditId, StoreError>;

    /// The changes that [`OperatorStore::erase_account`] would make. `None` when there is no such account.
    async fn erasure(&self, id: &AccountId, with_receipts: bool) -> Result<Option<Erasure>, StoreError>;

    /// Erases the stored data about the owner of an account, and revokes the account. `None` when there is no such
    /// account.
    ///
    /// The account keeps its id, which is a pseudonym from then on, its balance and totals, ledger, usage and payments.
    /// Its name becomes [`AgentName::ERASED`](crate::access::AgentName::ERASED). Email address, wallet, names and
    /// networks of keys, webhooks, events, deliveries, sessions, links, signups, and the paths of requests are deleted,
    /// and audit log entries about it keep only who did what and when. The buyer is kept on receipts for purchases,
    /// unless `with_receipts`. A second call finds nothing more, unless new data arrived in between.
    async fn erase_account(
        &self,
        id: &AccountId,
        with_receipts: bool,
        now: Timestamp,
    ) -> Result<Option<Erasure>, StoreError>;

    /// Deletes records that are older than `kept` allows: a slice of each kind, and the paths in the recent activity of
    /// the next accounts after a cursor. Returns how many records, and the cursor for the next call, `None` after the
    /// last account.
    async fn forget_older(
        &self,
        kept: &Retention,
        now: Timestamp,
        after: Option<&Cursor>,
    ) -> Result<(u64, Option<Cursor>), StoreError>;

    /// Entries of the audit log, newest first, at most `limit`.
    async fn audit_log(&self, query: &AuditQuery, limit: u32) -> Result<Vec<AuditEntry>, StoreError>;

    /// Adds up the business of a range of days, as one consistent read.
    ///
    /// Reads the daily totals, ledger entries and payments of those days, of all accounts. An error when a sum exceeds
    /// the range of [`Credits`](crate::Credits).
    async fn operations_report(&self, days: DayRange) -> Result<OperationsReport, StoreError>;

    /// Accounts, newest first, at most `limit` after `after`.
    ///
    /// With a filter, a page looks at a limited number of accounts only, so it may have fewer items than `limit`, or
    /// none, although a next one follows.
    async fn newest_accounts(
        &self,
        filter: &AccountFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Account>, StoreError>;

    /// Credited payments, newest first, at most `limit` after `after`.
    async fn newest_payments(
        &self,
        filter: &PaymentFilter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<PaymentRecord>, StoreError>;

    /// The ledger entries of one account, newest first, at most `limit` after `after`. As in
    /// [`Store::account_ledger`], a cursor is the number of an entry. Empty when there is no such account.
    async fn newest_entries(
        &self,
        id: &AccountId,
        written: Period,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LedgerEntry>, StoreError>;

    /// The key with this id, of any account, revoked or not.
    async fn key_of_any_account(&self, id: &KeyId) -> Result<Option<Key>, StoreError>;

    /// The records of the payments with this transaction's hash, one for each chain that has it.
    async fn payments_by_hash(&self, hash: &TxHash) -> Result<Vec<PaymentRecord>, StoreError>;

    /// The records of the payments whose receipts have this number. At most one, except by a hash collision.
    async fn payments_by_receipt(&self, number: &ReceiptNumber) -> Result<Vec<PaymentRecord>, StoreError>;

    /// The record of the payment whose receipt, or a credit note of it, has this consecutive number.
    async fn payment_by_number(&self, number: &ConsecutiveNumber) -> Result<Option<PaymentRecord>, StoreError>;

    /// The accounts that will have used up what they have left within as many days as `days` has, at the pace of those
    /// days ([`AccountRunway::of`]): at most `limit`, the first to run out first.
    ///
    /// Reads the daily totals of those days, of all accounts. Looks only at the 10,000 accounts that used most.
    async fn accounts_running_out(&self, days: DayRange, limit: u32) -> Result<Vec<AccountRunway>, StoreError>;

    /// The payments that processors took for accounts that were revoked before, and that are not reversed as a whole,
    /// newest first, at most `limit`. Nobody can spend their credits: they are to be refunded.
    ///
    /// Reads all payments of processors.
    async fn payments_of_revoked(&self, limit: u32) -> Result<Vec<PaymentRecord>, StoreError>;

    /// The deliveries that keep the next events from their webhooks because an attempt failed, after a cursor, at most
    /// `limit`, longest-retried first.
    async fn failing_deliveries(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<Delivery>, StoreError>;
}
