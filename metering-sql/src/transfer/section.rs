//! The sections of a store, one for each kind of record.

use std::fmt;

/// A kind of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// Accounts with their caps, windows and totals, in order of creation.
    Accounts,
    /// The ledger, in the order written.
    Ledger,
    /// Daily totals: by day, account, the bytes of route, method and source, and key.
    Usage,
    /// Recent usage: by account, in the order written.
    Activity,
    /// Remembered outcomes of charges: by account and the bytes of the request id.
    Idempotency,
    /// Holds, open ones and settled ones that are still kept: by their id.
    Holds,
    /// Requests of the month to routes with volume tiers: by account and the bytes of route and method.
    Volumes,
    /// The rule for recurring credits, if there is one.
    Refills,
    /// Plans: by chain and the bytes of their id.
    Plans,
    /// Payment records, in the order written.
    Payments,
    /// Reversals of processors' payments: by the bytes of processor and id.
    Reversals,
    /// The terms of receipts, by number.
    ReceiptTerms,
    /// Receipts and credit notes as they were issued: by payment and part.
    IssuedReceipts,
    /// Who bought, for receipts: by account and time.
    Buyers,
    /// Saved cards with the rules of automatic top-ups: by account.
    AutoTopUps,
    /// Charges of saved cards: by their id.
    TopUpCharges,
    /// Authorizations: by chain, token, payer and nonce.
    Authorizations,
    /// The places of wallets that pay gas, by chain and wallet.
    GasPlaces,
    /// Quotes, by their nonce.
    Quotes,
    /// Linked wallets, in the order of linking.
    Links,
    /// Challenges, by the bytes of their nonce.
    Challenges,
    /// How far each chain has been scanned, by chain.
    ScanMarks,
    /// Recipients of payments, by chain and address.
    Recipients,
    /// Arrivals that could not be read: by chain, block and hash.
    Unreadable,
    /// Payments that nobody claimed: by chain, hash, token, recipient and block.
    Unclaimed,
    /// Webhooks: by account, and in the order of creation; the operator's own first.
    Webhooks,
    /// Events that are still kept, in the order written.
    Events,
    /// Deliveries of events that are still kept, in the order written.
    Deliveries,
    /// Sinks for usage, by the bytes of their name.
    UsageSinks,
    /// What sinks were sent of usage: by the bytes of the sink, day, account, the bytes of route, method and source, and key.
    SentUsage,
    /// Signup sessions, by their token.
    Signups,
    /// Used solutions of bot challenges, by their bytes.
    Solutions,
    /// Links that were sent by email, by their token.
    EmailLinks,
    /// Sessions of browsers, by their token.
    BrowserSessions,
    /// Members of accounts, by their id.
    Members,
    /// Invitations to become members, by their id.
    Invitations,
    /// Sign-ins that were begun, by their token.
    SignIns,
    /// The accounts' own logs, by account and number.
    AccountLogs,
    /// Whose child an account is, by child.
    ChildAccounts,
    /// Credits that moved between accounts and their children, by parent and request.
    CreditMoves,
    /// Clients of OAuth that registered, by the bytes of their id.
    OAuthClients,
    /// Grants of OAuth, by their id.
    OAuthGrants,
    /// Operators, by the bytes of their name.
    Operators,
    /// Price versions, by number.
    Prices,
    /// The audit log, in the order written.
    AuditLog,
    /// Keys, by account and number.
    Keys,
    /// Secrets of keys, by their hash.
    Secrets,
}

impl Section {
    /// Every section, in the order in which they are written: records that others refer to come first. Secrets come
    /// last, so that nobody is charged on an incomplete store.
    pub const ALL: [Self; 47] = [
        Self::Accounts,
        Self::Keys,
        Self::Ledger,
        Self::Usage,
        Self::Activity,
        Self::Idempotency,
        Self::Holds,
        Self::Volumes,
        Self::Refills,
        Self::Plans,
        Self::Payments,
        Self::Reversals,
        Self::ReceiptTerms,
        Self::IssuedReceipts,
        Self::Buyers,
        Self::AutoTopUps,
        Self::TopUpCharges,
        Self::Authorizations,
        Self::GasPlaces,
        Self::Quotes,
        Self::Links,
        Self::Challenges,
        Self::ScanMarks,
        Self::Recipients,
        Self::Unreadable,
        Self::Unclaimed,
        Self::Webhooks,
        Self::Events,
        Self::Deliveries,
        Self::UsageSinks,
        Self::SentUsage,
        Self::Signups,
        Self::Solutions,
        Self::EmailLinks,
        Self::BrowserSessions,
        Self::Members,
        Self::Invitations,
        Self::SignIns,
        Self::AccountLogs,
        Self::ChildAccounts,
        Self::CreditMoves,
        Self::OAuthClients,
        Self::OAuthGrants,
        Self::Operators,
        Self::Prices,
        Self::AuditLog,
        Self::Secrets,
    ];

    /// Its display name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accounts => "accounts",
            Self::Ledger => "ledger",
            Self::Usage => "usage",
            Self::Activity => "activity",
            Self::Idempotency => "answers",
            Self::Holds => "holds",
            Self::Volumes => "volumes",
            Self::Refills => "refills",
            Self::Plans => "plans",
            Self::Payments => "payments",
            Self::Reversals => "reversals",
            Self::ReceiptTerms => "receipt_terms",
            Self::IssuedReceipts => "issued_receipts",
            Self::Buyers => "buyers",
            Self::AutoTopUps => "auto_top_ups",
            Self::TopUpCharges => "top_up_charges",
            Self::Authorizations => "authorizations",
            Self::GasPlaces => "gas_places",
            Self::Quotes => "quotes",
            Self::Links => "links",
            Self::Challenges => "challenges",
            Self::ScanMarks => "scan_marks",
            Self::Recipients => "recipients",
            Self::Unreadable => "unreadable",
            Self::Unclaimed => "unclaimed",
            Self::Webhooks => "webhooks",
            Self::Events => "events",
            Self::Deliveries => "deliveries",
            Self::UsageSinks => "usage_sinks",
            Self::SentUsage => "sent_usage",
            Self::Signups => "signups",
            Self::Solutions => "solutions",
            Self::EmailLinks => "email_links",
            Self::BrowserSessions => "browser_sessions",
            Self::Members => "members",
            Self::Invitations => "invitations",
            Self::SignIns => "sign_ins",
            Self::AccountLogs => "account_logs",
            Self::ChildAccounts => "child_accounts",
            Self::CreditMoves => "credit_moves",
            Self::OAuthClients => "oauth_clients",
            Self::OAuthGrants => "oauth_grants",
            Self::Operators => "operators",
            Self::Prices => "prices",
            Self::AuditLog => "audit_log",
            Self::Keys => "keys",
            Self::Secrets => "secrets",
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
