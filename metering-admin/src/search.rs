//! One search for everything: the form of the text determines its kind, and an index finds each kind.

use metering_core::access::{Account, AccountId, AgentName, AgentNameError, Email, KeyId};
use metering_core::chains::{Address, TxHash};
use metering_core::charging::{Hold, HoldId};
use metering_core::clock::Timestamp;
use metering_core::money::Credits;
use metering_core::operators::AccountFilter;
use metering_core::payments::{
    ConsecutiveNumber, CreditNoteNumber, PaymentRecord, ProcessorRef, ProcessorRefError, ReceiptNumber,
};
use metering_core::store::{Cursor, Page};
use metering_core::usage::ACTIVITY_KEPT;

use crate::administration::Administration;
use crate::error::{AdminError, wrong};
use crate::requests::Unheld;
use crate::wire::{
    AccountDocument, AccountRequestDocument, ChargedRequestDocument, FoundKeyDocument, PaymentRecordsDocument,
    SearchDocument,
};

/// The maximum number of results of each kind.
const MOST: u32 = 20;

/// The processor whose payments this service takes itself.
const STRIPE: &str = "stripe";

/// How often to read a balance again if concurrent charges change it.
const ATTEMPTS: usize = 3;

/// The kind of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    Transaction(TxHash),
    Wallet(Address),
    Receipt(ReceiptNumber),
    /// A payment that a processor took, as `PROCESSOR:ID`.
    Payment(ProcessorRef),
    Account(AccountId),
    Key(KeyId),
    Request(HoldId),
    Email(Email),
    /// The beginning of an agent's name.
    Name(String),
}

impl Term {
    /// Decides by the form of the text. The error never repeats it: it may be a secret.
    fn read(text: &str) -> Result<Self, AdminError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(wrong("q", "enter what to search for"));
        }
        if text.starts_with("sk_live_") {
            return Err(wrong(
                "q",
                "keys are not searched by their secret; search by the key's id, which starts with key_",
            ));
        }
        if text.starts_with("opr_") {
            return Err(wrong("q", "operators are not searched by their token; the list of operators has their names"));
        }
        if text.starts_with("0x") {
            return match text.len() {
                66 => text.parse().map(Self::Transaction).map_err(|error| wrong("q", error)),
                42 => text.parse().map(Self::Wallet).map_err(|error| wrong("q", error)),
                _ => Err(wrong("q", "a transaction is 0x and 64 hexadecimal digits, a wallet 0x and 40")),
            };
        }
        if let Some((processor, id)) = text.split_once(':') {
            return ProcessorRef::new(processor, id).map(Self::Payment).map_err(|error| {
                let part = if error == ProcessorRefError::Processor { "processor" } else { "id" };
                wrong("q", format_args!("a payment is PROCESSOR:ID, such as stripe:pi_1; the {part} {error}"))
            });
        }
        if text.contains('@') {
            return text.parse().map(Self::Email).map_err(|error| wrong("q", error));
        }
        let exact = text.parse().map(Self::Receipt).ok();
        let note = |number: CreditNoteNumber| Self::Receipt(number.receipt());
        let exact = exact.or_else(|| text.parse().map(note).ok());
        let exact = exact.or_else(|| text.parse().map(Self::Account).ok());
        let exact = exact.or_else(|| text.parse().map(Self::Key).ok());
        let exact = exact.or_else(|| text.parse().map(Self::Request).ok());
        match exact {
            Some(exact) => Ok(exact),
            // Such a text is in no name, and a store may reject it, for example U+0000.
            None if text.parse::<AgentName>().is_err() && text.parse::<ConsecutiveNumber>().is_err() => {
                Err(wrong("q", AgentNameError))
            }
            None => Ok(Self::Name(text.to_owned())),
        }
    }

    const fn kind(&self) -> &'static str {
        match self {
            Self::Transaction(_) => "transaction",
            Self::Wallet(_) => "wallet",
            Self::Receipt(_) => "receipt",
            Self::Payment(_) => "payment",
            Self::Account(_) => "account",
            Self::Key(_) => "key",
            Self::Request(_) => "request",
            Self::Email(_) => "email",
            Self::Name(_) => "name",
        }
    }
}

/// The results, before they become a document.
#[derive(Default)]
struct Found {
    accounts: Vec<Account>,
    keys: Vec<FoundKeyDocument>,
    payments: Vec<PaymentRecord>,
    requests: Vec<ChargedRequestDocument>,
    note: Option<String>,
    next: Option<Cursor>,
}

impl Administration {
    /// Searches for an account, email address, wallet, agent's name, key, transaction, receipt, processor's payment or
    /// request: the form of the text decides. At most 20 of each; `after` continues a search for names.
    ///
    /// # Errors
    /// [`AdminError::Request`] when the text is a secret or has the form of something that it is not, or when the store
    /// fails, or `after` is not a cursor of this list.
    pub async fn search(&self, text: &str, after: Option<&Cursor>) -> Result<SearchDocument, AdminError> {
        let term = Term::read(text)?;
        let found = match &term {
            Term::Transaction(hash) => self.with_accounts(self.store.payments_by_hash(hash).await?).await?,
            Term::Receipt(number) => self.with_accounts(self.store.payments_by_receipt(number).await?).await?,
            Term::Payment(payment) => self.of_processor(payment).await?,
            Term::Wallet(wallet) => self.of_wallet(wallet).await?,
            Term::Account(id) => {
                Found { accounts: self.store.account(id).await?.into_iter().collect(), ..Found::default() }
            }
            Term::Key(id) => self.of_key(id).await?,
            Term::Request(id) => self.of_request(id).await?,
            Term::Email(email) => {
                let accounts = self.store.account_by_email(email).await?.into_iter().collect();
                Found { accounts, ..Found::default() }
            }
            Term::Name(prefix) => {
                let filter = AccountFilter { name_prefix: Some(prefix.clone()), ..AccountFilter::default() };
                let Page { items: accounts, next } = self.store.newest_accounts(&filter, after, MOST).await?;
                // A consecutive number of a receipt may have the form of a name.
                let number = prefix.parse::<ConsecutiveNumber>().ok().filter(|_| accounts.is_empty());
                let numbered = match &number {
                    Some(number) => self.store.payment_by_number(number).await?,
                    None => None,
                };
                // An id of Stripe has the form of a name, and needs no processor's name.
                let at_stripe = ProcessorRef::new(STRIPE, prefix).ok().filter(|_| accounts.is_empty());
                match (numbered, at_stripe) {
                    (Some(payment), _) => Found { next, ..self.with_accounts(vec![payment]).await? },
                    (None, Some(payment)) => Found { next, ..self.of_processor(&payment).await? },
                    (None, None) => Found { accounts, next, ..Found::default() },
                }
            }
        };
        let Found { accounts, keys, payments, requests, note, next } = found;
        let plans = if payments.is_empty() { Vec::new() } else { self.store.plans().await? };
        Ok(SearchDocument {
            kind: term.kind().to_owned(),
            accounts: accounts.iter().map(AccountDocument::from).collect(),
            keys,
            payments: PaymentRecordsDocument::new(&Page { items: payments, next: None }, &plans).payments,
            requests,
            note,
            next: next.map(|cursor| cursor.as_str().to_owned()),
        })
    }

    async fn with_accounts(&self, payments: Vec<PaymentRecord>) -> Result<Found, AdminError> {
        let mut accounts: Vec<Account> = Vec::new();
        for record in &payments {
            if accounts.iter().all(|account| account.id != record.account) {
                accounts.extend(self.store.account(&record.account).await?);
            }
        }
        Ok(Found { accounts, payments, ..Found::default() })
    }

    async fn of_processor(&self, payment: &ProcessorRef) -> Result<Found, AdminError> {
        self.with_accounts(self.store.payments_by_hash(&payment.tx().hash).await?).await
    }

    /// The account that a wallet paid for, and those that it is linked to.
    async fn of_wallet(&self, wallet: &Address) -> Result<Found, AdminError> {
        let mut accounts: Vec<Account> = self.store.account_by_payer(wallet).await?.into_iter().collect();
        let most = usize::try_from(MOST).unwrap_or(usize::MAX);
        for id in self.store.linked_accounts(wallet).await? {
            if accounts.len() < most && accounts.iter().all(|account| account.id != id) {
                accounts.extend(self.store.account(&id).await?);
            }
        }
        Ok(Found { accounts, ..Found::default() })
    }

    async fn of_key(&self, id: &KeyId) -> Result<Found, AdminError> {
        let Some(key) = self.store.key_of_any_account(id).await? else { return Ok(Found::default()) };
        let accounts: Vec<Account> = self.store.account(&key.account).await?.into_iter().collect();
        Ok(Found { accounts, keys: vec![FoundKeyDocument::from(&key)], ..Found::default() })
    }

    async fn of_request(&self, id: &HoldId) -> Result<Found, AdminError> {
        let (account, requests, note) = match self.store.hold(id).await? {
            Some(hold) => (Some(hold.account.clone()), vec![self.charged(&hold).await?], None),
            None => match self.unheld(id).await? {
                Unheld::Charged { account, request, version, at } => {
                    let balance_after = self.balance_after(&account, at).await?;
                    let price_version = version.map(|number| number.0);
                    (
                        Some(account),
                        vec![ChargedRequestDocument { request: *request, price_version, balance_after }],
                        None,
                    )
                }
                Unheld::Unknown { account, why } => (account, Vec::new(), Some(why)),
            },
        };
        let accounts = match account {
            Some(account) => self.store.account(&account).await?.into_iter().collect(),
            None => Vec::new(),
        };
        Ok(Found { accounts, requests, note, ..Found::default() })
    }

    /// A request with what explains its charge.
    async fn charged(&self, hold: &Hold) -> Result<ChargedRequestDocument, AdminError> {
        let keys = self.store.key_labels(&hold.account).await?.into_iter().collect();
        let prices = self.store.price_versions(hold.created_at).await?;
        let balance_after = match hold.settled {
            Some(settled) => self.balance_after(&hold.account, settled.at).await?,
            None => None,
        };
        Ok(ChargedRequestDocument {
            request: AccountRequestDocument::new(hold, &keys),
            price_version: prices.in_force(hold.created_at).map(|version| version.number.0),
            balance_after,
        })
    }

    /// The balance of an account just after a time, and what was held then: what it has now, without what was written
    /// since. `None` if that is more than the recent activity has, or charges keep changing it.
    async fn balance_after(&self, id: &AccountId, at: Timestamp) -> Result<Option<Credits>, AdminError> {
        for _ in 0..ATTEMPTS {
            let Some(before) = self.store.account(id).await? else { return Ok(None) };
            let activity = self.store.activity(id, ACTIVITY_KEPT).await?;
            let is_same = |account: Account| account.totals.unspent() == before.totals.unspent();
            if !self.store.account(id).await?.is_some_and(is_same) {
                continue;
            }
            let newer: Vec<Credits> =
                activity.iter().take_while(|entry| entry.created_at > at).map(|entry| entry.amount).collect();
            let is_complete = newer.len() < activity.len();
            let since = Credits::checked_sum(newer).filter(|_| is_complete);
            return Ok(since.and_then(|since| before.totals.unspent().checked_sub(since)));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_a_text_decides_what_is_searched() {
        let (hash, wallet) = (format!("0x{}", "ab".repeat(32)), format!("0x{}", "ab".repeat(20)));
        let (key, request) = (format!("key_{}", "a1".repeat(10)), format!("req_{}", "a1".repeat(16)));
        // text, what it is
        let table = [
            (hash.as_str(), "transaction"),
            (&wallet, "wallet"),
            ("R-8453-9F86D081884C7D65", "receipt"),
            ("r-8453-9f86d081884c7d65", "receipt"),
            ("stripe:pi_1", "payment"),
            ("paddle:a@b:c", "payment"),
            ("org_x0000000000000000001", "account"),
            (&key, "key"),
            (&request, "request"),
            ("Jo@Example.com", "email"),
            (" my-agent ", "name"),
            ("r-agent", "name"),
            ("key_1", "name"),
            ("org_", "name"),
        ];
        for (text, kind) in table {
            assert_eq!(Term::read(text).map(|term| term.kind()).ok(), Some(kind), "{text}");
        }
    }

    #[test]
    fn secrets_are_refused_and_not_repeated() {
        let table = [
            ("sk_live_abc", "by the key's id"),
            (" sk_live_abc ", "by the key's id"),
            ("opr_abc", "by their token"),
            ("0x12", "64 hexadecimal digits"),
            ("jo@localhost", "email address"),
            ("Paddle:abc", "such as stripe:pi_1"),
            (" ", "enter what to search for"),
            ("abc\0", "1 to 64 letters"),
            ("abc def", "1 to 64 letters"),
        ];
        for (text, problem) in table {
            let error = Term::read(text).unwrap_err().to_string();
            assert!(error.contains(problem) && !error.contains("abc"), "{error}");
        }
    }
}
