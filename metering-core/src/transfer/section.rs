//! The kinds of records that a store holds.

use std::fmt;

/// A kind of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// Accounts with their caps, windows and totals, in the order of their making.
    Accounts,
    /// The ledger, in the order of its writing.
    Ledger,
    /// Daily totals: by day, account, and the bytes of route, method and source.
    Usage,
    /// Recent usage: by account, in the order of its writing.
    Activity,
    /// Remembered answers to requests: by account and the bytes of the request's id.
    Answers,
    /// Plans: by chain and the bytes of their id.
    Plans,
    /// Records of payments, in the order of their writing.
    Payments,
    /// Quotes, by their nonce.
    Quotes,
    /// Linked wallets, in the order of linking.
    Links,
    /// Challenges, by the bytes of their nonce.
    Challenges,
    /// How far chains were scanned, by chain.
    ScanMarks,
    /// Recipients of payments, by chain and address.
    Recipients,
    /// Arrivals that could not be read: by chain, block and hash.
    Unreadable,
    /// Signup sessions, by their token.
    Signups,
    /// Solutions of bot challenges that were used, by their bytes.
    Solutions,
    /// Keys, by their hash.
    Keys,
}

impl Section {
    /// Every section, in the order in which they are written: what is named by others first. The keys come last, so that
    /// nobody is charged on a store that is not whole.
    pub const ALL: [Self; 16] = [
        Self::Accounts,
        Self::Ledger,
        Self::Usage,
        Self::Activity,
        Self::Answers,
        Self::Plans,
        Self::Payments,
        Self::Quotes,
        Self::Links,
        Self::Challenges,
        Self::ScanMarks,
        Self::Recipients,
        Self::Unreadable,
        Self::Signups,
        Self::Solutions,
        Self::Keys,
    ];

    /// What people call it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accounts => "accounts",
            Self::Ledger => "ledger",
            Self::Usage => "usage",
            Self::Activity => "activity",
            Self::Answers => "answers",
            Self::Plans => "plans",
            Self::Payments => "payments",
            Self::Quotes => "quotes",
            Self::Links => "links",
            Self::Challenges => "challenges",
            Self::ScanMarks => "scan_marks",
            Self::Recipients => "recipients",
            Self::Unreadable => "unreadable",
            Self::Signups => "signups",
            Self::Solutions => "solutions",
            Self::Keys => "keys",
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
