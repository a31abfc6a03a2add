//! The sections of a store, and the kind of record that each has, in a form that does not depend on the backend.

mod amounts;
mod exact;
mod subject;

use std::fmt;
use std::sync::Arc;

use metering_core::access::{AccountAction, BrowserSession, Invitation, KeyRecord, Member, SecretRecord, SignInProof};
use metering_core::charging::Hold;
use metering_core::events::{Event, SentUsage, UsageSink, Webhook};
use metering_core::money::Refill;
use metering_core::oauth::{Grant, OAuthClient};
use metering_core::offers::AuthorizationRecord;
use metering_core::operators::{AuditEntry, Operator};
use metering_core::payments::{
    AutoTopUp, BuyerRecord, Challenge, IssuedReceipt, PaymentRecord, Plan, ProcessorReversal, Quote,
    ReceiptTermsRecord, RecipientRecord, TopUpCharge, UnclaimedPayment, UnreadableArrival,
};
use metering_core::prices::PriceVersion;
use metering_core::signups::{EmailLink, SignupSession};
use metering_core::store::{ChildAccount, CreditMove};
use metering_core::usage::DailyTotal;

use crate::transfer::record::{
    AccountRecord, ActivityRecord, DeliveryRecord, GasPlacesRecord, IdempotencyRecord, LedgerRecord, ScanMark,
    SolutionRecord, VolumeRecord, WalletLink,
};

/// Declares the sections, each with its name and the kind of its records, in the order in which they are written.
macro_rules! sections {
    ($(
        $(#[$section:meta])*
        $Section:ident = $name:literal of
            $(#[$record:meta])*
            $Record:ident($($of:ty),+),
    )+) => {
        /// A kind of record.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Section {
            $($(#[$section])* $Section,)+
        }

        impl Section {
            /// Every section, in the order in which they are written: records that others refer to come first. Secrets
            /// come last: no one can be charged on an incomplete store.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$Section),+];

            /// Its display name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Section => $name,)+
                }
            }
        }

        /// A record of a store.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Record {
            $($(#[$record])* $Record($($of),+),)+
        }

        impl Record {
            /// The section that it belongs to.
            #[must_use]
            pub const fn section(&self) -> Section {
                match self {
                    $(Self::$Record(..) => Section::$Section,)+
                }
            }
        }
    };
}

sections! {
    /// Accounts with their caps, windows and totals, in order of creation.
    Accounts = "accounts" of
        /// An account.
        Account(Box<AccountRecord>),
    /// Keys, by account and number.
    Keys = "keys" of
        /// A key, without its secrets.
        Key(Box<KeyRecord>),
    /// The ledger, in the order written.
    Ledger = "ledger" of
        /// A ledger entry.
        Ledger(LedgerRecord),
    /// Daily totals: by day, account, the bytes of route, method and source, and key.
    Usage = "usage" of
        /// A daily total.
        Usage(DailyTotal),
    /// Recent usage: by account, in the order written.
    Activity = "activity" of
        /// A recent usage entry.
        Activity(ActivityRecord),
    /// Remembered outcomes of charges: by account and the bytes of the request id.
    Idempotency = "answers" of
        /// The remembered outcome of a charge.
        Idempotency(IdempotencyRecord),
    /// Holds, open ones and settled ones that are still kept: by their id.
    Holds = "holds" of
        /// A hold.
        Hold(Box<Hold>),
    /// Requests of the month to routes with volume tiers: by account and the bytes of route and method.
    Volumes = "volumes" of
        /// The requests of the month to a route with volume tiers.
        Volume(VolumeRecord),
    /// The rule for recurring credits, if there is one.
    Refills = "refills" of
        /// The rule for recurring credits.
        Refill(Refill),
    /// Plans: by chain and the bytes of their id.
    Plans = "plans" of
        /// A plan.
        Plan(Box<Plan>),
    /// Payment records, in the order written.
    Payments = "payments" of
        /// The record of a payment.
        Payment(Box<PaymentRecord>),
    /// Reversals of processors' payments: by the bytes of processor and id.
    Reversals = "reversals" of
        /// A reversal of a processor's payment.
        Reversal(Box<ProcessorReversal>),
    /// The terms of receipts, by number.
    ReceiptTerms = "receipt_terms" of
        /// Terms of receipts.
        ReceiptTerms(Box<ReceiptTermsRecord>),
    /// Issued receipts and credit notes: by payment and part.
    IssuedReceipts = "issued_receipts" of
        /// An issued receipt or credit note.
        IssuedReceipt(Box<IssuedReceipt>),
    /// Buyers' details for receipts: by account and time.
    Buyers = "buyers" of
        /// A buyer's details for an account, valid for some time.
        Buyer(Box<BuyerRecord>),
    /// Saved cards with the rules of automatic top-ups: by account.
    AutoTopUps = "auto_top_ups" of
        /// The saved card of an account, and the rule of its automatic top-ups.
        AutoTopUp(Box<AutoTopUp>),
    /// Charges of saved cards: by their id.
    TopUpCharges = "top_up_charges" of
        /// A charge of a saved card.
        TopUpCharge(Box<TopUpCharge>),
    /// Authorizations: by chain, token, payer and nonce.
    Authorizations = "authorizations" of
        /// An authorization. Its claim is not moved: a pending one is free to claim.
        Authorization(Box<AuthorizationRecord>),
    /// The places of wallets that pay gas, by chain and wallet.
    GasPlaces = "gas_places" of
        /// The places of a wallet that pays gas.
        GasPlaces(GasPlacesRecord),
    /// Quotes, by their nonce.
    Quotes = "quotes" of
        /// A quote.
        Quote(Box<Quote>),
    /// Linked wallets, in the order of linking.
    Links = "links" of
        /// A linked wallet.
        Link(WalletLink),
    /// Challenges, by the bytes of their nonce.
    Challenges = "challenges" of
        /// A challenge.
        Challenge(Challenge),
    /// How far each chain has been scanned, by chain.
    ScanMarks = "scan_marks" of
        /// How far a chain has been scanned.
        ScanMark(ScanMark),
    /// Recipients of payments, by chain and address.
    Recipients = "recipients" of
        /// A recipient of payments.
        Recipient(RecipientRecord),
    /// Arrivals that could not be read: by chain, block and hash.
    Unreadable = "unreadable" of
        /// An arrival that could not be read.
        Unreadable(UnreadableArrival),
    /// Unclaimed payments: by chain, hash, token, recipient and block.
    Unclaimed = "unclaimed" of
        /// An unclaimed payment.
        Unclaimed(Box<UnclaimedPayment>),
    /// Webhooks: by account, and in the order of creation; the operator's own first.
    Webhooks = "webhooks" of
        /// A webhook.
        Webhook(Box<Webhook>),
    /// Events that are still kept, in the order written.
    Events = "events" of
        /// An event.
        Event(Box<Event>),
    /// Deliveries of events that are still kept, in the order written.
    Deliveries = "deliveries" of
        /// A delivery.
        Delivery(DeliveryRecord),
    /// Sinks for usage, by the bytes of their name.
    UsageSinks = "usage_sinks" of
        /// A sink for usage.
        UsageSink(UsageSink),
    /// Usage that was sent to sinks: by the bytes of the sink, day, account, the bytes of route, method and source, and
    /// key.
    SentUsage = "sent_usage" of
        /// The part of a daily total that a sink was sent.
        SentUsage(Box<SentUsage>),
    /// Signup sessions, by their token.
    Signups = "signups" of
        /// A signup session.
        Signup(SignupSession),
    /// Used solutions of bot challenges, by their bytes.
    Solutions = "solutions" of
        /// A used solution of a bot challenge.
        Solution(SolutionRecord),
    /// Links that were sent by email, by their token.
    EmailLinks = "email_links" of
        /// A link that was sent by email.
        EmailLink(EmailLink),
    /// Sessions of browsers, by their token.
    BrowserSessions = "browser_sessions" of
        /// A session of a browser.
        BrowserSession(Box<BrowserSession>),
    /// Members of accounts, by their id.
    Members = "members" of
        /// A member of an account.
        Member(Box<Member>),
    /// Invitations to become members, by their id.
    Invitations = "invitations" of
        /// An invitation to become one.
        Invitation(Box<Invitation>),
    /// Sign-ins that were begun, by their token.
    SignIns = "sign_ins" of
        /// A sign-in that was begun.
        SignIn(Box<SignInProof>),
    /// The accounts' own logs, by account and number.
    AccountLogs = "account_logs" of
        /// An entry of an account's own log.
        AccountAction(Box<AccountAction>),
    /// Parents of accounts, by child.
    ChildAccounts = "child_accounts" of
        /// The parent of an account.
        Child(Box<ChildAccount>),
    /// Credits that moved between accounts and their children, by parent and request.
    CreditMoves = "credit_moves" of
        /// Credits that moved between an account and its child.
        Move(Box<CreditMove>),
    /// Clients of OAuth that registered, by the bytes of their id.
    OAuthClients = "oauth_clients" of
        /// A client of OAuth that registered.
        OAuthClient(OAuthClient),
    /// Grants of OAuth, by their id.
    OAuthGrants = "oauth_grants" of
        /// A grant of OAuth.
        OAuthGrant(Box<Grant>),
    /// Operators, by the bytes of their name.
    Operators = "operators" of
        /// An operator.
        Operator(Operator),
    /// Price versions, by number.
    Prices = "prices" of
        /// A price version, and the text of its catalogue.
        Price(Box<PriceVersion>, Arc<str>),
    /// The audit log, in the order written.
    AuditLog = "audit_log" of
        /// An entry of the audit log.
        AuditEntry(Box<AuditEntry>),
    /// Secrets of keys, by their hash.
    Secrets = "secrets" of
        /// A secret of a key.
        Secret(SecretRecord),
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
