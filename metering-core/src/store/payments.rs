//! The part of the storage contract for payments on chains.

use std::ops::RangeInclusive;

use async_trait::async_trait;

use crate::access::account::{Account, AccountId};
use crate::access::key::KeyHash;
use crate::chains::TxHash;
use crate::chains::address::Address;
use crate::chains::transaction::TxRef;
use crate::clock::Timestamp;
use crate::money::ledger::NewLedgerEntry;
use crate::payments::auto_top_up::{AutoTopUp, TopUpCharge, TopUpChargeId, TopUpStop};
use crate::payments::buyer::{Buyer, BuyerRecord};
use crate::payments::issued_receipt::IssuedReceipt;
use crate::payments::payment::{
    ArrivalLocation, Payment, PaymentRecord, PaymentTarget, PaymentUse, SettlementStep, SoldPlan, UnclaimedPayment,
    UnreadableArrival,
};
use crate::payments::plan::{Plan, PlanKey};
use crate::payments::processor::{ProcessorRef, ProcessorReversal};
use crate::payments::quote::{NonceHash, Quote};
use crate::payments::receipt_terms::{ReceiptTerms, ReceiptTermsRecord};
use crate::payments::recipient::{RecipientRecord, Registration};
use crate::payments::recovery::Challenge;
use crate::payments::value::PaymentValue;
use crate::store::{
    AutoTopUpChange, AutoTopUpSet, Claim, Claimed, Cursor, Page, ProcessorReversed, ReversalChange, Store, StoreError,
    TopUpEnd,
};

/// Stores quotes, payments, linked wallets and challenges.
///
/// As in [`Store`], each method is one atomic operation, and expected outcomes are values. Payment
/// records are never deleted, so each `(chain_id, hash)` counts only once. Only [`PaymentStore::settle_payment`]
/// and [`PaymentStore::reverse_processor_payment`] change a record, and never its account, payer or amount.
///
/// Call it directly to manage plans:
///
/// ```
/// use metering_core::PaymentStore;
/// use metering_sqlite::SqliteStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = SqliteStore::in_memory()?;
/// # let plan: metering_core::payments::Plan = serde_json::from_str(
/// #     r#"{"id": "starter", "chain_id": 8453, "token_symbol": "ETH", "payment_kind": "native_value", "credits": 10,
/// #         "token_amount": "0.002", "token_decimals": 18, "label": "Starter"}"#,
/// # )?;
/// plan.validate()?;
/// store.put_plans(vec![plan.clone()]).await?;
/// store.set_plan_active(&plan.key(), false).await?;
/// assert!(!store.plans().await?[0].active);
/// assert!(store.remove_plan(&plan.key()).await?);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait PaymentStore: Store {
    /// All plans, by sort order, then chain, then id.
    async fn plans(&self) -> Result<Vec<Plan>, StoreError>;

    /// Adds plans, or replaces those with the same key, in order, all or none. Callers must have validated them with
    /// [`Plan::validate`].
    async fn put_plans(&self, plans: Vec<Plan>) -> Result<(), StoreError>;

    /// Removes a plan; `false` when none has that key.
    async fn remove_plan(&self, key: &PlanKey) -> Result<bool, StoreError>;

    /// Puts a plan on sale or takes it off sale; `false` when no plan has that key.
    async fn set_plan_active(&self, key: &PlanKey, active: bool) -> Result<bool, StoreError>;

    /// Stores an open quote, unless [`open_quote`](crate::backend::decision::open_quote) refuses it.
    async fn open_quote(&self, quote: Quote) -> Result<QuoteOpened, StoreError>;

    /// The quote with that nonce.
    async fn quote(&self, nonce: &NonceHash) -> Result<Option<Quote>, StoreError>;

    /// The quote that waits for a payment ([`Quote::waits`], [`Quote::is_paid_by`]). No payment pays both a signup
    /// quote and a top-up quote, because their amounts differ ([`TagKind`](crate::payments::TagKind)).
    async fn quote_paid_by(&self, payment: &Payment) -> Result<Option<Quote>, StoreError>;

    /// The stored top-up quotes of an account, in any state, by creation time, then nonce.
    async fn top_up_quotes(&self, account: &AccountId) -> Result<Vec<Quote>, StoreError>;

    /// The targets of all stored quotes on a chain, in any state: each once, sorted. The cost depends on the number of
    /// targets, not on the number of quotes.
    async fn quoted_targets(&self, chain_id: u64) -> Result<Vec<PaymentTarget>, StoreError>;

    /// Turns a quote and its payment into an account with its key, or sets the key of an account that the watcher
    /// already created. The payment's record, the account, its entries and the quote's new state are written in one
    /// operation.
    ///
    /// The caller has checked the payment. [`claim_step`](crate::backend::decision::claim_step),
    /// [`claim_open`](crate::backend::decision::claim_open) and
    /// [`claim_paid`](crate::backend::decision::claim_paid) have the refusals in order.
    ///
    /// An id or a key that any account ever had is an error, and nothing changes.
    async fn claim_quote(&self, claim: Claim) -> Result<Claimed, StoreError>;

    /// Credits a payment to an existing account: writes its record, the ledger entry and the link of the payer's wallet
    /// in one operation, and marks the account's own top-up quote that it pays as claimed. As with a claim, the record
    /// is unsettled if the payment has the hash of its block, else final.
    ///
    /// The caller has checked the payment. [`credit_payment`](crate::backend::decision::credit_payment) has the
    /// refusals in order.
    async fn credit_payment(&self, credit: PaymentCredit) -> Result<PaymentCredited, StoreError>;

    /// The record of a transaction, if it was used.
    async fn payment(&self, tx: &TxRef) -> Result<Option<PaymentRecord>, StoreError>;

    /// Payment records in the order written, at most `limit` after `after`.
    async fn payments(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<PaymentRecord>, StoreError>;

    /// Records of a chain's payments that are not final, including reversed ones, in the order written, at most `limit`
    /// after `after`. Its cursors are valid for this list only.
    async fn unsettled_payments(
        &self,
        chain_id: u64,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<PaymentRecord>, StoreError>;

    /// Changes a payment's settlement and posts the matching ledger entry, in one operation. If several callers saw the
    /// same record, only one succeeds.
    ///
    /// [`settle_payment`](crate::backend::decision::settle_payment) has the refusals in order.
    async fn settle_payment(&self, change: SettlementChange) -> Result<PaymentSettled, StoreError>;

    /// Credits a payment that a processor took, as [`PaymentStore::credit_payment`] does, and logs it. The payment's
    /// transaction is that of `processor` ([`ProcessorRef::tx`]), so each is credited once.
    ///
    /// A revoked account is credited too
    /// ([`credit_processor_payment`](crate::backend::decision::credit_processor_payment)).
    async fn credit_processor_payment(
        &self,
        credit: PaymentCredit,
        processor: ProcessorRef,
    ) -> Result<PaymentCredited, StoreError>;

    /// Records a reversal of a processor's payment, or its end, with the matching ledger entry, and logs it.
    ///
    /// [`reverse_processor_payment`](crate::backend::decision::reverse_processor_payment) has the refusals in order.
    async fn reverse_processor_payment(&self, change: ReversalChange) -> Result<ProcessorReversed, StoreError>;

    /// The recorded reversals of a processor's payment, by time, then id.
    async fn processor_reversals(&self, payment: &TxHash) -> Result<Vec<ProcessorReversal>, StoreError>;

    /// The saved card of an account and its automatic top-ups, if it ever had a card.
    async fn auto_top_up(&self, account: &AccountId) -> Result<Option<AutoTopUp>, StoreError>;

    /// Saves or removes the card of an account, or turns its automatic top-ups on or off, as
    /// [`set_auto_top_up`](crate::backend::decision::set_auto_top_up) decides.
    async fn set_auto_top_up(&self, account: &AccountId, change: AutoTopUpChange) -> Result<AutoTopUpSet, StoreError>;

    /// Stops the automatic top-ups of an account and writes the event for its owner, as
    /// [`stop_top_ups`](crate::backend::decision::stop_top_ups) decides.
    async fn stop_top_ups(&self, account: &AccountId, reason: TopUpStop, now: Timestamp) -> Result<(), StoreError>;

    /// Accounts whose card is due ([`is_top_up_due`](crate::backend::decision::is_top_up_due)), of the next `limit`
    /// that have automatic top-ups, oldest first. A page may have fewer, even none, and not be the
    /// last.
    async fn due_top_ups(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<AutoTopUp>, StoreError>;

    /// Stores a charge of the card of an account that is to be made now, and returns it, as
    /// [`begin_top_up`](crate::backend::decision::begin_top_up) decides. If several calls compete, only one gets a
    /// charge.
    async fn begin_top_up(
        &self,
        account: &AccountId,
        id: TopUpChargeId,
        now: Timestamp,
    ) -> Result<Option<TopUpCharge>, StoreError>;

    /// The charges whose outcome is not known, the oldest first, at most `limit`.
    async fn open_top_ups(&self, limit: u32) -> Result<Vec<TopUpCharge>, StoreError>;

    /// The charges of an account since a moment that were paid or may be, the oldest first.
    async fn top_up_charges(&self, account: &AccountId, since: Timestamp) -> Result<Vec<TopUpCharge>, StoreError>;

    /// Ends a charge, once; `false` if it has ended or is not known. A failed charge may later turn out to be paid. A
    /// charge that failed, or whose payment was reversed, stops the automatic top-ups of its account, with an event.
    async fn end_top_up(&self, id: TopUpChargeId, end: TopUpEnd, now: Timestamp) -> Result<bool, StoreError>;

    /// Who bought for an account: all details that it had, by time.
    async fn buyers(&self, account: &AccountId) -> Result<Vec<BuyerRecord>, StoreError>;

    /// Changes the buyer for an account, as [`set_buyer`](crate::backend::decision::set_buyer) decides; `None` for
    /// nobody in particular. Purchases made before keep their buyer. Whether there is such an account that is not
    /// revoked.
    async fn set_buyer(&self, account: &AccountId, buyer: Option<Buyer>, now: Timestamp) -> Result<bool, StoreError>;

    /// Adds the current buyer of an account to the receipts for its purchases at that moment, if they name none.
    /// [`add_receipt_buyer`](crate::backend::decision::add_receipt_buyer) has the refusals in order.
    async fn add_receipt_buyer(
        &self,
        account: &AccountId,
        bought_at: Timestamp,
    ) -> Result<ReceiptBuyerAdded, StoreError>;

    /// Sets the terms of the receipts of payments from now on. Does nothing if they hold already, or if none were ever set and
    /// they are not [special](ReceiptTerms::are_special).
    async fn set_receipt_terms(&self, terms: ReceiptTerms, now: Timestamp) -> Result<(), StoreError>;

    /// All terms that receipts ever used, by number. The last ones hold.
    async fn receipt_terms(&self) -> Result<Vec<ReceiptTermsRecord>, StoreError>;

    /// The receipts and credit notes of an account that were issued on terms. Each was written with its payment or reversal.
    async fn issued_receipts(&self, account: &AccountId) -> Result<Vec<IssuedReceipt>, StoreError>;

    /// The account that a wallet paid for, if it is not revoked.
    async fn account_by_payer(&self, payer: &Address) -> Result<Option<Account>, StoreError>;

    /// The accounts that a wallet is linked to by an earlier proof, except revoked ones, in the order of linking.
    async fn linked_accounts(&self, wallet: &Address) -> Result<Vec<AccountId>, StoreError>;

    /// The wallets that are linked to an account, in the order of linking.
    async fn linked_wallets(&self, account: &AccountId) -> Result<Vec<Address>, StoreError>;

    /// Stores a challenge. A nonce that is in use is an error, and nothing changes.
    async fn open_challenge(&self, challenge: Challenge) -> Result<(), StoreError>;

    /// The challenge with that nonce, if it is not used up. An expired one can still be found for a while.
    async fn challenge(&self, nonce: &str) -> Result<Option<Challenge>, StoreError>;

    /// Counts a wrong signature for a challenge; number [`Challenge::MAX_FAILURES`] voids it. Does nothing if there is
    /// no such challenge.
    async fn fail_challenge(&self, nonce: &str) -> Result<(), StoreError>;

    /// Uses up a challenge and replaces its account's key in one operation, as
    /// [`Store::replace_key`](crate::Store::replace_key) does. `None`, and nothing changes, when the challenge no
    /// longer exists, or [`rotate_key`](crate::backend::decision::rotate_key) refuses.
    async fn rotate_key(&self, nonce: &str, key: KeyHash, now: Timestamp) -> Result<Option<Account>, StoreError>;

    /// The last block of a chain that was scanned for payments, if any.
    async fn scan_mark(&self, chain_id: u64) -> Result<Option<u64>, StoreError>;

    /// Stores the last scanned block of a chain. A block below the stored one changes nothing.
    async fn set_scan_mark(&self, chain_id: u64, block: u64) -> Result<(), StoreError>;

    /// Registers recipients of payments, each given with its chain, and returns a registration for each, in the same
    /// order, as [`register_recipients`](crate::payments::register_recipients) decides.
    async fn register_recipients(
        &self,
        configured: Vec<(u64, Address)>,
        now: Timestamp,
    ) -> Result<Vec<Registration>, StoreError>;

    /// Every registered recipient, sorted by chain and address.
    async fn recipients(&self) -> Result<Vec<RecipientRecord>, StoreError>;

    /// Stores an arrival that could not be read. Replaces an earlier record of the same place.
    async fn put_unreadable(&self, arrival: UnreadableArrival) -> Result<(), StoreError>;

    /// The arrivals of a chain that could not be read, from a block on, including abandoned ones: at most `limit`,
    /// sorted by block and transaction hash.
    async fn unreadable(
        &self,
        chain_id: u64,
        from_block: u64,
        limit: u32,
    ) -> Result<Vec<UnreadableArrival>, StoreError>;

    /// The arrivals of a chain that are due for a retry at `now`: at most `limit`, the longest overdue first.
    async fn unreadable_due(
        &self,
        chain_id: u64,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<UnreadableArrival>, StoreError>;

    /// Deletes an arrival that was read after all. Does nothing if it is not stored.
    async fn forget_unreadable(&self, location: &ArrivalLocation) -> Result<(), StoreError>;

    /// Stores a payment that nobody claimed, unless its transaction was used. If it is stored already, only the hash and time
    /// of its block change. The first record of its transaction deletes it.
    async fn put_unclaimed(&self, payment: UnclaimedPayment) -> Result<(), StoreError>;

    /// The newest unclaimed payments after a cursor, by the time when they were mined, at most `limit`; and how many there
    /// are in all.
    async fn unclaimed(&self, after: Option<&Cursor>, limit: u32) -> Result<(Page<UnclaimedPayment>, u64), StoreError>;

    /// The unclaimed payments in some blocks of a chain.
    async fn unclaimed_in(
        &self,
        chain_id: u64,
        blocks: RangeInclusive<u64>,
    ) -> Result<Vec<UnclaimedPayment>, StoreError>;

    /// Deletes unclaimed payments that a reorganisation removed. One that was stored again since, with another block,
    /// is kept.
    async fn forget_unclaimed(&self, gone: Vec<UnclaimedPayment>) -> Result<(), StoreError>;
}

/// The outcome of [`PaymentStore::open_quote`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuoteOpened {
    /// It was stored.
    Opened,
    /// An account has its email address.
    EmailTaken,
    /// An account has its payer's address.
    PayerTaken,
    /// Its account has [`Quote::MAX_TOP_UPS`] unpaid top-up quotes.
    TooManyTopUps,
    /// Another quote of its payer has that amount; draw a new one.
    AmountTaken,
}

/// A payment to credit to an existing account.
#[derive(Debug, Clone)]
pub struct PaymentCredit {
    /// The account to credit.
    pub account: AccountId,
    /// The payment, already checked.
    pub payment: Payment,
    /// Its use.
    pub used_as: PaymentUse,
    /// The ledger entry, which names the plan.
    pub entry: NewLedgerEntry,
    /// The plan as it is sold; `None` without a plan.
    pub sold: Option<SoldPlan>,
    /// The current value of the payment, if the operator has set a currency.
    pub value: Option<PaymentValue>,
    /// Whether to link the payer's wallet to the account.
    pub link_payer: bool,
    /// How to handle a payment that pays an open quote.
    pub quotes: QuotePrecedence,
    /// The time of the credit.
    pub now: Timestamp,
}

/// The account that gets a payment that pays an open quote, when an account claims it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotePrecedence {
    /// The quote, unless it is a top-up quote of the account itself.
    Quote,
    /// Like [`QuotePrecedence::Quote`] for a top-up quote of another account. The account for a signup quote: its payer
    /// already has this account.
    TopUpQuote,
    /// The account, and only if the payment pays its own open top-up quote.
    OwnQuote,
    /// The account, because the payer consented.
    Account,
}

/// A change of a payment's settlement.
#[derive(Debug, Clone)]
pub struct SettlementChange {
    /// The record as the caller read it.
    pub seen: PaymentRecord,
    /// The step to take.
    pub step: SettlementStep,
    /// The time of the step.
    pub now: Timestamp,
}

/// The outcome of [`PaymentStore::settle_payment`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentSettled {
    /// The step was taken. The account after it.
    Changed(Account),
    /// The record has changed; read it again.
    Stale,
    /// The balance, a total or the entry would be out of range.
    OutOfRange,
}

/// The outcome of [`PaymentStore::add_receipt_buyer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptBuyerAdded {
    /// The receipts name the current buyer, now or already before.
    Added,
    /// The account has no buyer now; nothing was changed.
    NoBuyer,
    /// The receipts name someone else; nothing was changed.
    Taken,
}

/// The outcome of [`PaymentStore::credit_payment`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentCredited {
    /// It was credited. The account after it.
    Account(Account),
    /// It was already credited to this account. The account and the record.
    Repeated(Account, Box<PaymentRecord>),
    /// The transaction was used before, by another account or a claim; or it pays for usage, if this is a top-up.
    TxUsed,
    /// An open quote expects this payment, or no open quote of the account does ([`QuotePrecedence::OwnQuote`]).
    BelongsToQuote,
    /// There is no such account, or it is revoked. Processors' payments are credited to revoked accounts.
    NoSuchAccount,
    /// The balance or a total would be out of range.
    OutOfRange,
}
