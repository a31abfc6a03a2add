//! The part of the storage contract that is about money that arrives by chain.

use std::fmt;

use async_trait::async_trait;

use crate::account::{Account, AccountId};
use crate::address::Address;
use crate::clock::Timestamp;
use crate::key::KeyHash;
use crate::ledger::NewLedgerEntry;
use crate::payment::{
    ArrivalPlace, Payment, PaymentRecord, PaymentTarget, PaymentUse, SettlementStep, UnreadableArrival,
};
use crate::quote::{NonceHash, Quote};
use crate::recipient::{RecipientRecord, Registration};
use crate::recovery::Challenge;
use crate::store::{Cursor, NewAccount, Page, StoreError};
use crate::transaction::TxRef;

/// Where quotes, payments, linked wallets and challenges are kept.
///
/// As in [`Store`](crate::Store), each method is one atomic fact, and expected answers are values. The records of
/// payments are never deleted: `(chain_id, hash)` counts once, for ever. Only [`PaymentStore::settle_payment`] changes
/// one, and never its account, payer or amount.
#[async_trait]
pub trait PaymentStore: Send + Sync + fmt::Debug {
    /// Keeps a quote that is open.
    ///
    /// Refused, in this order: when an account that is not revoked has its email address, or its payer's address; or
    /// when a quote of the same payer reserves its amount, as [`Quote::reserves_amount_of`] says. A quote that is not
    /// open, or whose nonce is in use, is an error.
    async fn open_quote(&self, quote: Quote) -> Result<QuoteOpened, StoreError>;

    /// The quote of that nonce.
    async fn quote(&self, nonce: &NonceHash) -> Result<Option<Quote>, StoreError>;

    /// The open quote that a payment pays, as [`Quote::is_paid_by`] says.
    async fn quote_paid_by(&self, payment: &Payment) -> Result<Option<Quote>, StoreError>;

    /// Where the quotes that are remembered were to be paid on a chain, whatever became of them: each once, in order.
    /// The cost depends on the number of targets, not on the number of quotes.
    async fn quoted_targets(&self, chain_id: u64) -> Result<Vec<PaymentTarget>, StoreError>;

    /// Turns a quote and its payment into an account with its key, or hands out the key of one that was made without.
    /// The payment's record, the account, its entries and the quote's new state are one fact.
    ///
    /// The caller has judged the payment. Answers, in this order:
    /// - no quote of that nonce: [`Claimed::NoSuchQuote`];
    /// - a claimed quote, or one that is paid and is not to be delivered now, or was paid by another transaction, or
    ///   whose account is revoked: [`Claimed::AlreadyClaimed`];
    /// - a paid one, delivered now: its account's key is replaced by the claim's, and the rest of
    ///   [`Claim::account`] is ignored;
    /// - an open one: [`Claimed::TxUsed`] if the transaction has a record; [`Claimed::PayerTaken`] if an account that
    ///   is not revoked has the payer's address; [`Claimed::OutOfRange`] if the entries cannot be held; else the
    ///   account is made, without its email address when an account that is not revoked has it: what was paid for is
    ///   not refused for that.
    ///
    /// An id or a key that an account ever had is an error, and nothing changes.
    async fn claim_quote(&self, claim: Claim) -> Result<Claimed, StoreError>;

    /// Credits a payment to an account that exists: its record, the ledger's entry and the link of the payer's wallet
    /// are one fact. As with a claim, the record is unsettled if the payment names the hash of its block, else final.
    ///
    /// The caller has judged the payment. Answers, in this order: [`PaymentCredited::NoSuchAccount`], also for a
    /// revoked one; [`PaymentCredited::Repeated`] when this account was credited with it before, other than by a
    /// claim; [`PaymentCredited::TxUsed`] when the transaction has any other record;
    /// [`PaymentCredited::BelongsToQuote`] when an open quote is paid by it and the credit is to yield to quotes;
    /// [`PaymentCredited::OutOfRange`]; else it is credited.
    async fn credit_payment(&self, credit: PaymentCredit) -> Result<PaymentCredited, StoreError>;

    /// The record of a transaction, if it was used.
    async fn payment(&self, tx: &TxRef) -> Result<Option<PaymentRecord>, StoreError>;

    /// Records of payments in the order of their writing, at most `limit` after `after`.
    async fn payments(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<PaymentRecord>, StoreError>;

    /// Records of a chain's payments that are not final, in the order of their writing, at most `limit` after `after`.
    /// Those that were reversed are among them. A cursor is of this list alone.
    async fn unsettled_payments(
        &self,
        chain_id: u64,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<PaymentRecord>, StoreError>;

    /// Changes where a payment stands, and posts the ledger entry that belongs to it, in one fact. Of several callers
    /// that saw the same record, one succeeds.
    ///
    /// Responds, in this order:
    /// - [`PaymentSettled::Stale`] when the record is no longer [`SettlementChange::seen`], or its settlement does not
    ///   allow the step ([`PaymentRecord::after`]);
    /// - [`PaymentSettled::OutOfRange`] when the balance, a total or the entry could not hold the amount;
    /// - else the record is changed, and the entry of [`PaymentRecord::entry_of`] posted, to a revoked account too. The
    ///   amount is what the entries of kind [`LedgerKind::PURCHASES`](crate::LedgerKind::PURCHASES) that name the
    ///   payment brought its account. The balance may go below zero.
    async fn settle_payment(&self, change: SettlementChange) -> Result<PaymentSettled, StoreError>;

    /// The account that is not revoked and that a wallet paid for.
    async fn account_by_payer(&self, payer: &Address) -> Result<Option<Account>, StoreError>;

    /// The accounts, none of them revoked, that a wallet is linked to by an earlier proof, in the order of linking.
    async fn linked_accounts(&self, wallet: &Address) -> Result<Vec<AccountId>, StoreError>;

    /// Keeps a challenge. A nonce that is in use is an error, and nothing changes.
    async fn open_challenge(&self, challenge: Challenge) -> Result<(), StoreError>;

    /// The challenge of that nonce, if it is not used up. One that expired is still found for a while.
    async fn challenge(&self, nonce: &str) -> Result<Option<Challenge>, StoreError>;

    /// Counts a wrong answer to a challenge; the [`Challenge::MAX_FAILURES`]th uses it up. Nothing happens to one that
    /// is not there.
    async fn fail_challenge(&self, nonce: &str) -> Result<(), StoreError>;

    /// Uses a challenge up and puts `key` in the place of its account's key, in one fact, as
    /// [`Store::replace_key`](crate::Store::replace_key) does. `None`, and nothing changes, when there is no such
    /// challenge any more, it expired before `now`, or its account is revoked or has another payer.
    async fn rotate_key(&self, nonce: &str, key: KeyHash, now: Timestamp) -> Result<Option<Account>, StoreError>;

    /// The last block of a chain that was scanned for payments, if any was.
    async fn scan_mark(&self, chain_id: u64) -> Result<Option<u64>, StoreError>;

    /// Remembers the last block that was scanned; one before that which is remembered changes nothing.
    async fn set_scan_mark(&self, chain_id: u64, block: u64) -> Result<(), StoreError>;

    /// Registers where payments are received, each recipient with its chain, and returns what is known of each, in
    /// their order, as [`register_recipients`](crate::register_recipients) says.
    async fn register_recipients(
        &self,
        configured: Vec<(u64, Address)>,
        now: Timestamp,
    ) -> Result<Vec<Registration>, StoreError>;

    /// Every recipient that was registered, by chain and address.
    async fn recipients(&self) -> Result<Vec<RecipientRecord>, StoreError>;
    /// Keeps an arrival that could not be read, in place of what was known of that place.
    async fn put_unreadable(&self, arrival: UnreadableArrival) -> Result<(), StoreError>;

    /// The arrivals of a chain that could not be read, those given up included, from a block on: at most `limit`, by block
    /// and the transaction's hash.
    async fn unreadable(
        &self,
        chain_id: u64,
        from_block: u64,
        limit: u32,
    ) -> Result<Vec<UnreadableArrival>, StoreError>;

    /// Those that are to be tried again by `now`: at most `limit`, the longest due first.
    async fn unreadable_due(
        &self,
        chain_id: u64,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<UnreadableArrival>, StoreError>;

    /// Forgets an arrival, since it was read after all. Nothing happens when it is not there.
    async fn forget_unreadable(&self, place: &ArrivalPlace) -> Result<(), StoreError>;
}

/// The answer to [`PaymentStore::open_quote`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuoteOpened {
    /// It is kept.
    Opened,
    /// An account has its email address.
    EmailTaken,
    /// An account has its payer's address.
    PayerTaken,
    /// Another quote of its payer has that amount; draw another.
    AmountTaken,
}

/// A quote and the payment that pays it.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Which quote.
    pub nonce: NonceHash,
    /// The payment, judged.
    pub payment: Payment,
    /// The account to be made: its key, its payer, its first entries.
    pub account: NewAccount,
    /// Whether somebody gets the key.
    pub delivery: KeyDelivery,
    /// When.
    pub now: Timestamp,
}

/// Whether a claim's key is given to anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyDelivery {
    /// The claimer gets it.
    Now,
    /// Nobody does: the claim is the watcher's, and the quote's owner will come for a key later.
    Later,
}

/// The answer to [`PaymentStore::claim_quote`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// The account, with the claim's key.
    Account(Account),
    /// There is no quote of that nonce.
    NoSuchQuote,
    /// The quote was claimed before.
    AlreadyClaimed,
    /// The transaction was used before.
    TxUsed,
    /// The payer has an account by now.
    PayerTaken,
    /// The entries add up to more than a balance can hold.
    OutOfRange,
}

/// A payment for an account that exists.
#[derive(Debug, Clone)]
pub struct PaymentCredit {
    /// Who is credited.
    pub account: AccountId,
    /// The payment, judged.
    pub payment: Payment,
    /// What it is used for.
    pub used_as: PaymentUse,
    /// The ledger's entry, which names the plan.
    pub entry: NewLedgerEntry,
    /// Whether the payer's wallet is linked to the account from now on.
    pub link_payer: bool,
    /// What happens when an open quote is paid by it.
    pub quotes: QuotePrecedence,
    /// When.
    pub now: Timestamp,
}

/// Who has a payment that an open quote waits for, when an account asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotePrecedence {
    /// The quote.
    Quote,
    /// The account: the payer said so.
    Account,
}

/// A change of a payment's settlement.
#[derive(Debug, Clone)]
pub struct SettlementChange {
    /// The record as the caller saw it.
    pub seen: PaymentRecord,
    /// What to do.
    pub step: SettlementStep,
    /// When.
    pub now: Timestamp,
}

/// The response to [`PaymentStore::settle_payment`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentSettled {
    /// It was done; the account after it.
    Changed(Account),
    /// The record is another one by now; read it again.
    Stale,
    /// The balance, a total or an entry could not hold the amount.
    OutOfRange,
}

/// The answer to [`PaymentStore::credit_payment`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentCredited {
    /// It was credited; the account after it.
    Account(Account),
    /// It was credited to this account before; the account as it is, and the record.
    Repeated(Account, Box<PaymentRecord>),
    /// The transaction was used before, by another account or a claim.
    TxUsed,
    /// An open quote waits for this payment.
    BelongsToQuote,
    /// There is no such account, or it is revoked.
    NoSuchAccount,
    /// The balance or a total could not hold the amount.
    OutOfRange,
}
