//! Payments that processors took, as a checkout reports them. Reports are trusted: nothing else proves a payment.

use crate::access::account::{Account, AccountId};
use crate::chains::address::Address;
use crate::chains::units::TokenUnits;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::money::currency::Currency;
use crate::money::ledger::{LedgerKind, NewLedgerEntry, PaymentRef};
use crate::payments::payment::{Payment, PaymentError, PaymentRecord, PaymentUse, SoldPlan};
use crate::payments::plan::{Plan, TokenAmount};
use crate::payments::processor::{ProcessorRef, ProcessorRefError};
use crate::payments::receipt::ReceiptNumber;
use crate::service::Payments;
use crate::service::fields::Fields;
use crate::store::{PaymentCredit, PaymentCredited, ProcessorReversed, QuotePrecedence, ReversalChange};
use crate::wire::{
    ProcessorPaymentRequest, ProcessorPaymentResponse, ProcessorReversalRequest, ProcessorReversalResponse,
};

/// The largest amount, so sums and shares of it are exact.
const MAX_AMOUNT: u128 = (1 << 63) - 1;
/// The most characters of a reason.
const MAX_REASON_CHARS: usize = 200;

/// The sold credits or plan.
struct Sold {
    plan_id: Option<String>,
    credits: Credits,
    label: String,
    bonus: Option<Credits>,
}

impl Payments<'_> {
    /// Credits a payment that a processor took. The same payment sent again changes nothing.
    ///
    /// A revoked account is credited too, since the money was taken: refund the payment at its processor, and report the
    /// refund.
    ///
    /// ```
    /// use metering_core::service::PaymentSettings;
    /// use metering_core::wire::{ProcessorPaymentRequest, ProcessorReversalRequest};
    /// use metering_core::{Catalogue, Service, ServiceConfig};
    /// use metering_sqlite::SqliteStore;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = std::sync::Arc::new(SqliteStore::in_memory()?);
    /// let shop = Service::start(store.clone(), Catalogue::default(), ServiceConfig::default())
    ///     .with_payments(store, Default::default(), PaymentSettings::default());
    /// let (account, _) = shop.open_account("my-agent", "0".parse()?).await?;
    /// let paid: ProcessorPaymentRequest = serde_json::from_value(serde_json::json!({
    ///     "processor": "paddle", "id": "txn_1", "org_id": account.id.as_str(),
    ///     "amount": "10.00", "currency": "EUR", "credits": 100,
    /// }))?;
    /// assert_eq!(shop.payments().credit_from_processor(&paid).await?.credit_balance.to_string(), "100");
    /// assert!(shop.payments().credit_from_processor(&paid).await?.already_credited);
    ///
    /// let refund: ProcessorReversalRequest = serde_json::from_value(serde_json::json!({
    ///     "processor": "paddle", "id": "adj_1", "payment_id": "txn_1", "amount": "2.50", "currency": "EUR",
    /// }))?;
    /// assert_eq!(shop.payments().reverse_from_processor(&refund).await?.credit_balance.to_string(), "75");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ValidationFailed`], [`Error::Payment`] when there is no such account or the payment was credited on other
    /// terms, or when the store fails.
    pub async fn credit_from_processor(
        self,
        request: &ProcessorPaymentRequest,
    ) -> Result<ProcessorPaymentResponse, Error> {
        let mut fields = Fields::default();
        let processor = reference(&mut fields, request.processor.as_deref(), "id", request.id.as_deref());
        let account = fields.parsed::<AccountId>("org_id", request.org_id.as_deref());
        let currency = fields.parsed::<Currency>("currency", request.currency.as_deref());
        let amount = amount(&mut fields, currency, request.amount.as_deref(), request.amount_minor);
        if request.amount.is_none() && request.amount_minor.is_none() {
            fields.wrong("amount", "is required, as text, or amount_minor as a whole number");
        }
        let sold = self.sold_at_processor(&mut fields, request).await?;
        let (Some(processor), Some(account), Some(currency), Some(amount), Some(sold), true) =
            (processor, account, currency, amount, sold, fields.is_empty())
        else {
            return Err(fields.into_error());
        };
        let credit = credit(&processor, account, currency, amount, &sold, self.access.now());
        let plan_id = sold.plan_id.clone();
        match self.state.store()?.credit_processor_payment(credit, processor.clone()).await? {
            PaymentCredited::Account(account) => {
                if account.revoked_at.is_some() {
                    let (account, payment, at) = (&account.id, processor.id(), processor.processor());
                    tracing::warn!(%account, payment, at, "a payment was credited to a revoked account; refund it");
                }
                let account_revoked = account.revoked_at.is_some();
                Ok(ProcessorPaymentResponse {
                    account_revoked,
                    ..response(&account, &processor, sold.credits, plan_id)
                })
            }
            PaymentCredited::Repeated(account, record) => {
                let added = self.added_by(&account, &processor.tx()).await?;
                let terms = [
                    ("amount", record.payment.amount == amount, record.payment.amount.to_human(currency.decimals())),
                    ("currency", record.payment.token == currency.token(), currency_of(&record.payment.token)),
                    ("plan_id", record.plan_id == plan_id, record.plan_id.clone().unwrap_or_else(|| "none".to_owned())),
                    // The terms of a plan may have changed since.
                    ("credits", request.credits.is_none_or(|credits| credits == added), added.to_string()),
                ];
                same_terms(&processor, terms)?;
                let account_revoked = account.revoked_at.is_some_and(|at| at <= record.recorded_at);
                let response = response(&account, &processor, added, plan_id);
                Ok(ProcessorPaymentResponse { already_credited: true, account_revoked, ..response })
            }
            PaymentCredited::TxUsed => Err(self.used_by_another(&processor).await?),
            PaymentCredited::NoSuchAccount => Err(PaymentError::UnknownAccount.into()),
            PaymentCredited::OutOfRange => {
                Err(Error::field("credits", "would put the account's balance out of range; nothing was credited"))
            }
            // Processors pay no quotes.
            PaymentCredited::BelongsToQuote => Err(Error::Internal),
        }
    }

    /// Takes back credits of a payment that was refunded or disputed, or returns them if the reversal has ended. The same
    /// reversal sent again changes nothing. The balance may go below zero.
    ///
    /// [`Payments::credit_from_processor`] has an example.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`], [`Error::Payment`] when there is no such payment or the reversal was recorded on other
    /// terms, or when the store fails.
    pub async fn reverse_from_processor(
        self,
        request: &ProcessorReversalRequest,
    ) -> Result<ProcessorReversalResponse, Error> {
        let mut fields = Fields::default();
        let (name, has_amount) =
            (request.processor.as_deref(), request.amount.is_some() || request.amount_minor.is_some());
        let reversal = reference(&mut fields, name, "id", request.id.as_deref());
        let payment = reference(&mut fields, name, "payment_id", request.payment_id.as_deref());
        let currency = fields.optional::<Currency>("currency", request.currency.as_deref());
        if has_amount && request.currency.is_none() {
            fields.wrong("currency", "is required with an amount");
        }
        let amount = amount(&mut fields, currency, request.amount.as_deref(), request.amount_minor);
        let reason = request.reason.clone().unwrap_or_default();
        if reason.chars().count() > MAX_REASON_CHARS || reason.chars().any(char::is_control) {
            fields.wrong("reason", format_args!("must be one line of at most {MAX_REASON_CHARS} characters"));
        }
        if request.restored && request.again {
            fields.wrong("again", "must not come with restored");
        }
        let (Some(reversal), Some(payment), true) = (reversal, payment, fields.is_empty()) else {
            return Err(fields.into_error());
        };
        let record = self.state.store()?.payment(&payment.tx()).await?;
        let record = record.ok_or_else(|| PaymentError::NoProcessorPayment(payment.clone()))?;
        let paid_in = currency_of(&record.payment.token);
        if currency.is_some_and(|currency| currency.code() != paid_in) {
            return Err(Error::field("currency", format_args!("must be that of the payment, {paid_in}")));
        }
        let (restored, again, now) = (request.restored, request.again, self.access.now());
        let (of, payment_ref) = (reversal.clone(), payment.clone());
        let change = ReversalChange { reversal: of, payment: payment_ref, amount, reason, restored, again, now };
        let (recorded, already_recorded) = match self.state.store()?.reverse_processor_payment(change).await? {
            ProcessorReversed::Recorded(recorded) => (recorded, false),
            ProcessorReversed::Repeated(recorded) => (recorded, true),
            ProcessorReversed::NoSuchPayment => return Err(PaymentError::NoProcessorPayment(payment).into()),
            ProcessorReversed::OtherTerms(known) => {
                let of = human(&record, known.amount);
                let terms = [
                    ("payment_id", known.payment == payment.tx().hash, "another".to_owned()),
                    ("amount", amount.is_none_or(|amount| amount == known.amount), of),
                ];
                same_terms(&reversal, terms)?;
                return Err(Error::Internal);
            }
            ProcessorReversed::TooMuch(paid) => {
                let paid = human(&record, paid);
                return Err(Error::field(
                    "amount",
                    format_args!("must be above zero and at most the amount paid, {paid}"),
                ));
            }
            ProcessorReversed::OutOfRange => {
                return Err(Error::field(
                    "amount",
                    "would put the account's balance out of range; nothing was changed",
                ));
            }
        };
        Ok(ProcessorReversalResponse {
            org_id: recorded.account.id.to_string(),
            credit_balance: recorded.account.totals.balance,
            amount_reversed: human(&record, recorded.amount),
            currency: paid_in,
            restored: recorded.reversal.restored_at.is_some(),
            already_recorded,
        })
    }

    /// The purchase behind a payment: an amount of credits, or a plan.
    async fn sold_at_processor(
        self,
        fields: &mut Fields,
        request: &ProcessorPaymentRequest,
    ) -> Result<Option<Sold>, Error> {
        let plan_id = request.plan_id.clone();
        if !plan_id.as_deref().is_none_or(is_plan_id) {
            fields.wrong("plan_id", "must be 1 to 64 characters of A-Z a-z 0-9 _ - .");
            return Ok(None);
        }
        if let Some(credits) = request.credits {
            if !credits.is_positive() {
                fields.wrong("credits", "must be above zero");
                return Ok(None);
            }
            let label = plan_id.clone().unwrap_or_else(|| format!("{credits} credits"));
            return Ok(Some(Sold { plan_id, credits, label, bonus: None }));
        }
        let Some(id) = plan_id else {
            fields.wrong("credits", "is required, or plan_id");
            return Ok(None);
        };
        let plans = self.state.store()?.plans().await?;
        let mut named = plans.iter().filter(|plan| plan.id == id);
        let Some(plan) = named.next() else {
            fields.wrong("plan_id", "is not a plan of this service; send credits as well");
            return Ok(None);
        };
        let Some(credits) = plan.credits_in_all() else { return Err(Error::Internal) };
        if named.any(|other| other.credits_in_all() != Some(credits)) {
            fields.wrong("plan_id", "has other credits on other chains; send credits as well");
            return Ok(None);
        }
        let Plan { label, bonus_credits, .. } = plan.clone();
        Ok(Some(Sold { plan_id: Some(id), credits, label, bonus: Some(bonus_credits) }))
    }

    /// The error for a payment that another account has.
    async fn used_by_another(self, processor: &ProcessorRef) -> Result<Error, Error> {
        let record = self.state.store()?.payment(&processor.tx()).await?.ok_or(Error::Internal)?;
        Ok(other_terms(processor, "org_id", record.account.to_string()))
    }
}

/// Whether a text can be the id of a plan, as for plans on chains.
fn is_plan_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=64).contains(&text.len()) && text.bytes().all(plain)
}

/// A payment or reversal by its names.
fn reference(fields: &mut Fields, processor: Option<&str>, name: &str, id: Option<&str>) -> Option<ProcessorRef> {
    let (processor, id) = (fields.required("processor", processor), fields.required(name, id));
    match ProcessorRef::new(processor?, id?) {
        Ok(reference) => Some(reference),
        Err(problem) => {
            fields.wrong(if problem == ProcessorRefError::Processor { "processor" } else { name }, problem);
            None
        }
    }
}

/// An amount, in the currency's smallest unit; `None` if it is missing or wrong.
fn amount(
    fields: &mut Fields,
    currency: Option<Currency>,
    text: Option<&str>,
    minor: Option<u64>,
) -> Option<TokenUnits> {
    let (name, units) = match (text, minor) {
        (Some(_), Some(_)) => {
            fields.wrong("amount", "must not come with amount_minor");
            return None;
        }
        (None, None) => return None,
        (None, Some(minor)) => ("amount_minor", TokenUnits::new(minor.into())),
        (Some(text), None) => {
            let parsed = TokenAmount::parse(text).map_err(|problem| fields.wrong("amount", problem)).ok()?;
            let currency = currency?;
            let Some(units) = parsed.to_units(currency.decimals()) else {
                let decimals = currency.decimals();
                fields.wrong(
                    "amount",
                    format_args!("has more than the {decimals} decimals of {currency}, or is too large"),
                );
                return None;
            };
            ("amount", units)
        }
    };
    if units.get() == 0 || units.get() > MAX_AMOUNT {
        fields.wrong(name, "must be above zero and below 2^63 of the smallest unit");
        return None;
    }
    Some(units)
}

fn credit(
    processor: &ProcessorRef,
    account: AccountId,
    currency: Currency,
    amount: TokenUnits,
    sold: &Sold,
    now: Timestamp,
) -> PaymentCredit {
    let tx = processor.tx();
    let Sold { plan_id, credits, label, bonus } = sold;
    let what = plan_id.as_ref().map_or_else(|| "Credits".to_owned(), |plan| format!("Plan {plan}"));
    PaymentCredit {
        account,
        payment: Payment {
            tx,
            payer: Address::ZERO,
            recipient: Address::ZERO,
            token: currency.token(),
            amount,
            block_number: 0,
            block_hash: None,
            mined_at: now,
        },
        used_as: PaymentUse::Processor,
        entry: NewLedgerEntry {
            kind: LedgerKind::PurchaseTopup,
            amount: *credits,
            description: format!("{what}, payment {} at {}", processor.id(), processor.processor()),
            payment: Some(PaymentRef { tx, plan_id: plan_id.clone() }),
        },
        sold: Some(SoldPlan {
            label: label.clone(),
            bonus_credits: *bonus,
            token_symbol: currency.code().to_owned(),
            token_decimals: currency.decimals(),
        }),
        // The payment is an amount of a currency already.
        value: None,
        link_payer: false,
        quotes: QuotePrecedence::Account,
        now,
    }
}

fn response(
    account: &Account,
    processor: &ProcessorRef,
    amount_added: Credits,
    plan_id: Option<String>,
) -> ProcessorPaymentResponse {
    ProcessorPaymentResponse {
        org_id: account.id.to_string(),
        credit_balance: account.totals.balance,
        amount_added,
        total_credits_purchased: account.totals.purchased,
        plan_id,
        receipt_number: ReceiptNumber::of(&processor.tx()).to_string(),
        already_credited: false,
        account_revoked: false,
    }
}

/// Checks that the recorded terms equal the sent ones: the name of each, whether it is the same, and its old value.
fn same_terms<const N: usize>(id: &ProcessorRef, terms: [(&'static str, bool, String); N]) -> Result<(), Error> {
    match terms.into_iter().find(|(_, is_same, _)| !is_same) {
        Some((field, _, recorded)) => Err(other_terms(id, field, recorded)),
        None => Ok(()),
    }
}

fn other_terms(id: &ProcessorRef, field: &'static str, recorded: String) -> Error {
    PaymentError::OtherTerms { id: id.clone(), field, recorded }.into()
}

fn currency_of(token: &Address) -> String {
    Currency::of_token(token).map_or_else(|| "unknown".to_owned(), |currency| currency.code().to_owned())
}

/// An amount of a payment's currency, with its decimals.
fn human(record: &PaymentRecord, amount: TokenUnits) -> String {
    amount.to_human(Currency::of_token(&record.payment.token).map_or(0, Currency::decimals))
}
