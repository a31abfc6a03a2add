//! The records of a store, in a form that does not depend on the backend.

mod amounts;
mod exact;

use std::fmt;
use std::sync::Arc;

use metering_core::RequestId;
use metering_core::access::{
    Account, AccountAction, AccountId, BrowserSession, Invitation, KeyNumber, KeyRecord, Member, SecretRecord,
    SignInProof,
};
use metering_core::chains::Address;
use metering_core::charging::{CountedRoute, Hold, StoredResult, UsageKind, Volume, Window};
use metering_core::clock::{Day, Timestamp};
use metering_core::events::{DeliveryId, Event, Progress, SentUsage, UsageSink, Webhook, WebhookId};
use metering_core::money::{Credits, LedgerEntry, Refill};
use metering_core::oauth::{Grant, OAuthClient};
use metering_core::offers::{AuthorizationId, AuthorizationRecord};
use metering_core::operators::{AuditEntry, Operator};
use metering_core::payments::{
    AutoTopUp, BuyerRecord, Challenge, IssuedReceipt, PaymentRecord, Plan, ProcessorReversal, Quote,
    ReceiptTermsRecord, RecipientRecord, TopUpCharge, UnclaimedPayment, UnreadableArrival,
};
use metering_core::prices::PriceVersion;
use metering_core::signups::{EmailLink, SignupSession};
use metering_core::store::{ChildAccount, CreditMove};
use metering_core::usage::{DailyTotal, UsageLine};

use crate::transfer::section::Section;

/// A record of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// An account.
    Account(Box<AccountRecord>),
    /// A ledger entry.
    Ledger(LedgerRecord),
    /// A daily total.
    Usage(DailyTotal),
    /// A recent usage entry.
    Activity(ActivityRecord),
    /// The remembered outcome of a charge.
    Idempotency(IdempotencyRecord),
    /// A hold.
    Hold(Box<Hold>),
    /// The requests of the month to a route with volume tiers.
    Volume(VolumeRecord),
    /// The rule for recurring credits.
    Refill(Refill),
    /// A plan.
    Plan(Box<Plan>),
    /// The record of a payment.
    Payment(Box<PaymentRecord>),
    /// A reversal of a processor's payment.
    Reversal(Box<ProcessorReversal>),
    /// Terms of receipts.
    ReceiptTerms(Box<ReceiptTermsRecord>),
    /// A receipt or credit note as it was issued.
    IssuedReceipt(Box<IssuedReceipt>),
    /// Who bought for an account, for some time.
    Buyer(Box<BuyerRecord>),
    /// The saved card of an account, and the rule of its automatic top-ups.
    AutoTopUp(Box<AutoTopUp>),
    /// A charge of a saved card.
    TopUpCharge(Box<TopUpCharge>),
    /// An authorization. Its claim is not moved: a pending one is free to claim.
    Authorization(Box<AuthorizationRecord>),
    /// The places of a wallet that pays gas.
    GasPlaces(GasPlacesRecord),
    /// A quote.
    Quote(Box<Quote>),
    /// A linked wallet.
    Link(WalletLink),
    /// A challenge.
    Challenge(Challenge),
    /// How far a chain has been scanned.
    ScanMark(ScanMark),
    /// A recipient of payments.
    Recipient(RecipientRecord),
    /// An arrival that could not be read.
    Unreadable(UnreadableArrival),
    /// A payment that nobody claimed.
    Unclaimed(Box<UnclaimedPayment>),
    /// A webhook.
    Webhook(Box<Webhook>),
    /// An event.
    Event(Box<Event>),
    /// A delivery.
    Delivery(DeliveryRecord),
    /// A sink for usage.
    UsageSink(UsageSink),
    /// What a sink was sent of a daily total.
    SentUsage(Box<SentUsage>),
    /// A signup session.
    Signup(SignupSession),
    /// A used solution of a bot challenge.
    Solution(SolutionRecord),
    /// A link that was sent by email.
    EmailLink(EmailLink),
    /// A session of a browser.
    BrowserSession(Box<BrowserSession>),
    /// A member of an account.
    Member(Box<Member>),
    /// An invitation to become one.
    Invitation(Box<Invitation>),
    /// A sign-in that was begun.
    SignIn(Box<SignInProof>),
    /// An entry of an account's own log.
    AccountAction(Box<AccountAction>),
    /// Whose child an account is.
    Child(Box<ChildAccount>),
    /// Credits that moved between an account and its child.
    Move(Box<CreditMove>),
    /// A client of OAuth that registered.
    OAuthClient(OAuthClient),
    /// A grant of OAuth.
    OAuthGrant(Box<Grant>),
    /// An operator.
    Operator(Operator),
    /// A price version, and the text of its catalogue.
    Price(Box<PriceVersion>, Arc<str>),
    /// An entry of the audit log.
    AuditEntry(Box<AuditEntry>),
    /// A key, without its secrets.
    Key(Box<KeyRecord>),
    /// A secret of a key.
    Secret(SecretRecord),
}

/// An account, all its data for deciding charges, and the number of its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRecord {
    /// The account.
    pub account: Account,
    /// Accepted requests in the current minute.
    pub minute: Window,
    /// Accepted requests in the current day.
    pub day: Window,
    /// How many entries it has: all of its ledger entries, and the usage entries among the last
    /// [`ACTIVITY_KEPT`](metering_core::usage::ACTIVITY_KEPT) of both together. Older usage entries are not moved.
    pub entries: u64,
    /// The day it was last processed for a refill.
    pub refilled_on: Option<Day>,
}

/// A ledger entry. It keeps its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRecord {
    /// The entry.
    pub entry: LedgerEntry,
    /// How many newer entries its account has, ledger and usage together; `None` when it is not among the last
    /// [`ACTIVITY_KEPT`](metering_core::usage::ACTIVITY_KEPT).
    pub newer: Option<u32>,
}

/// A usage entry, among the last [`ACTIVITY_KEPT`](metering_core::usage::ACTIVITY_KEPT) entries of its account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityRecord {
    /// The account.
    pub account: AccountId,
    /// How many newer entries its account has, ledger and usage together.
    pub newer: u32,
    /// Route, method and source.
    pub line: UsageLine,
    /// The key that the requests came with.
    pub key: KeyNumber,
    /// The change of the balance.
    pub amount: Credits,
    /// How the usage came about.
    pub kind: UsageKind,
    /// How many requests share it.
    pub calls: u64,
    /// The path of the requests, if all have the same.
    pub request_path: Option<Arc<str>>,
    /// When it was written.
    pub created_at: Timestamp,
}

/// The outcome of a charge with a request id, while it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// The account of the request.
    pub account: AccountId,
    /// Its id.
    pub request: RequestId,
    /// The outcome.
    pub result: StoredResult,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// The requests of an account to a route with volume tiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeRecord {
    /// The account.
    pub account: AccountId,
    /// The route.
    pub route: CountedRoute,
    /// The requests of its newest month.
    pub volume: Volume,
}

/// A wallet that is linked to an account by an earlier proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalletLink {
    /// The wallet.
    pub wallet: Address,
    /// The account.
    pub account: AccountId,
}

/// The places of a wallet's transactions
/// ([`AuthorizationStore::assign_gas_place`](metering_core::store::AuthorizationStore::assign_gas_place)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GasPlacesRecord {
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The wallet that pays the gas.
    pub wallet: Address,
    /// The first place that was never assigned.
    pub next: u64,
    /// The places that were given back and not assigned again, in ascending order.
    pub given_back: Vec<u64>,
}

/// How far a chain has been scanned for payments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanMark {
    /// The chain's id.
    pub chain_id: u64,
    /// The last scanned block.
    pub block: u64,
}

/// A used solution of a bot challenge.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SolutionRecord {
    /// The solution.
    pub solution: [u8; 32],
    /// When its challenge expires.
    pub expires_at: Timestamp,
}

impl fmt::Debug for SolutionRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SolutionRecord({}…, {})", hex::encode(&self.solution[..4]), self.expires_at)
    }
}

/// A delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRecord {
    /// Its id.
    pub id: DeliveryId,
    /// Where to.
    pub webhook: WebhookId,
    /// The number of its event.
    pub event: i64,
    /// Its progress.
    pub progress: Progress,
}

impl Record {
    /// The section that it belongs to.
    #[must_use]
    pub const fn section(&self) -> Section {
        match self {
            Self::Account(_) => Section::Accounts,
            Self::Ledger(_) => Section::Ledger,
            Self::Usage(_) => Section::Usage,
            Self::Activity(_) => Section::Activity,
            Self::Idempotency(_) => Section::Idempotency,
            Self::Hold(_) => Section::Holds,
            Self::Volume(_) => Section::Volumes,
            Self::Refill(_) => Section::Refills,
            Self::Plan(_) => Section::Plans,
            Self::Payment(_) => Section::Payments,
            Self::Reversal(_) => Section::Reversals,
            Self::ReceiptTerms(_) => Section::ReceiptTerms,
            Self::IssuedReceipt(_) => Section::IssuedReceipts,
            Self::Buyer(_) => Section::Buyers,
            Self::AutoTopUp(_) => Section::AutoTopUps,
            Self::TopUpCharge(_) => Section::TopUpCharges,
            Self::Authorization(_) => Section::Authorizations,
            Self::GasPlaces(_) => Section::GasPlaces,
            Self::Quote(_) => Section::Quotes,
            Self::Link(_) => Section::Links,
            Self::Challenge(_) => Section::Challenges,
            Self::ScanMark(_) => Section::ScanMarks,
            Self::Recipient(_) => Section::Recipients,
            Self::Unreadable(_) => Section::Unreadable,
            Self::Unclaimed(_) => Section::Unclaimed,
            Self::Webhook(_) => Section::Webhooks,
            Self::Event(_) => Section::Events,
            Self::Delivery(_) => Section::Deliveries,
            Self::UsageSink(_) => Section::UsageSinks,
            Self::SentUsage(_) => Section::SentUsage,
            Self::Signup(_) => Section::Signups,
            Self::Solution(_) => Section::Solutions,
            Self::EmailLink(_) => Section::EmailLinks,
            Self::BrowserSession(_) => Section::BrowserSessions,
            Self::Member(_) => Section::Members,
            Self::Invitation(_) => Section::Invitations,
            Self::SignIn(_) => Section::SignIns,
            Self::AccountAction(_) => Section::AccountLogs,
            Self::Child(_) => Section::ChildAccounts,
            Self::Move(_) => Section::CreditMoves,
            Self::OAuthClient(_) => Section::OAuthClients,
            Self::OAuthGrant(_) => Section::OAuthGrants,
            Self::Operator(_) => Section::Operators,
            Self::Price(..) => Section::Prices,
            Self::AuditEntry(_) => Section::AuditLog,
            Self::Key(_) => Section::Keys,
            Self::Secret(_) => Section::Secrets,
        }
    }

    /// A short description for messages, without secrets.
    #[must_use]
    pub fn subject(&self) -> String {
        match self {
            Self::Account(record) => format!("account {}", record.account.id),
            Self::Ledger(LedgerRecord { entry, .. }) => format!("ledger entry {} of {}", entry.id, entry.account),
            Self::Usage(DailyTotal { account, day, line, key, .. }) => {
                format!(
                    "usage of {account} on {day}, {} {} ({}), key {}",
                    line.http_method,
                    line.route_template,
                    line.source.as_str(),
                    key.get()
                )
            }
            Self::Activity(record) => {
                format!("activity of {} at {}, {} before the last", record.account, record.created_at, record.newer)
            }
            Self::Idempotency(record) => {
                format!("outcome of request {} of {}", record.request.as_str(), record.account)
            }
            Self::Hold(hold) => format!("hold {} of {}", hold.id, hold.account),
            Self::Volume(VolumeRecord { account, route, volume }) => {
                format!("requests of {account} to {} {} in {}", route.http_method, route.route_template, volume.month)
            }
            Self::Refill(_) => "rule for recurring credits".to_owned(),
            Self::Plan(plan) => format!("plan {}", plan.key()),
            Self::Payment(record) => format!("payment {}", record.payment.tx),
            Self::Reversal(reversal) => {
                format!("reversal {} at {}", reversal.reference.id(), reversal.reference.processor())
            }
            Self::ReceiptTerms(record) => format!("receipt terms {}", record.number),
            Self::IssuedReceipt(issued) => format!("receipt of payment {}, part {}", issued.tx, issued.part),
            Self::Buyer(record) => format!("buyer of {} since {}", record.account, record.since),
            Self::AutoTopUp(settings) => format!("saved card of {}", settings.account),
            Self::TopUpCharge(charge) => format!("automatic top-up {} of {}", charge.id, charge.account),
            Self::Authorization(record) => {
                let AuthorizationId { chain_id, payer, nonce, .. } = record.signed.id();
                format!("authorization {nonce} of {payer} on chain {chain_id}")
            }
            Self::GasPlaces(places) => format!("gas places of {} on chain {}", places.wallet, places.chain_id),
            Self::Quote(quote) => format!("quote {:?}", quote.nonce),
            Self::Link(link) => format!("link of {} to {}", link.wallet, link.account),
            Self::Challenge(challenge) => format!("challenge of {}", challenge.account),
            Self::ScanMark(mark) => format!("scan mark of chain {}", mark.chain_id),
            Self::Recipient(record) => format!("recipient {} on chain {}", record.recipient, record.chain_id),
            Self::Unreadable(arrival) => format!("unreadable arrival {}", arrival.location),
            Self::Unclaimed(payment) => format!("unclaimed payment {}", payment.arrival.tx),
            Self::Webhook(webhook) => format!("webhook {}", webhook.id),
            Self::Event(event) => format!("event {}", event.id()),
            Self::Delivery(record) => format!("delivery {} to {}", record.id.get(), record.webhook),
            Self::UsageSink(sink) => format!("usage sink {}", sink.name),
            Self::SentUsage(row) => format!("usage of {} on {} at sink {}", row.account, row.day, row.sink),
            Self::Signup(session) => format!("signup {:?}", session.token),
            Self::Solution(record) => format!("solution {record:?}"),
            Self::EmailLink(link) => format!("email link {:?} of {}", link.token, link.account),
            Self::BrowserSession(session) => format!("session {} of {}", session.id, session.account),
            Self::Member(member) => format!("member {} of {}", member.id, member.account),
            Self::Invitation(invitation) => format!("invitation {} of {}", invitation.id, invitation.account),
            Self::SignIn(proof) => format!("sign-in {:?}", proof.token),
            Self::AccountAction(action) => format!("log entry {} of {}", action.number, action.account),
            Self::Child(child) => format!("parent of {}", child.account),
            Self::Move(moved) => format!("credits moved between {} and {}", moved.parent, moved.child),
            Self::OAuthClient(client) => format!("OAuth client {}", client.id),
            Self::OAuthGrant(grant) => format!("OAuth grant {:?} of {}", grant.token, grant.account),
            Self::Operator(operator) => format!("operator {}", operator.name),
            Self::Price(version, _) => format!("price version {}", version.number),
            Self::AuditEntry(entry) => format!("audit entry {}", entry.id.0),
            Self::Key(record) => format!("key {} of {}", record.key.id, record.key.account),
            Self::Secret(record) => format!("secret {:?} of {}", record.hash, record.account),
        }
    }
}
