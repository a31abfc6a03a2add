//! Receipts for account holders, made from the ledger, the payments' records and the plans.

use std::collections::{HashMap, VecDeque};

use crate::access::account::Account;
use crate::access::credentials::Caller;
use crate::access::scope::Scope;
use crate::chains::explorer::transaction_url;
use crate::chains::transaction::TxRef;
use crate::chains::units::TokenUnits;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::money::ledger::{LedgerEntry, LedgerKind, PaymentRef};
use crate::payments::buyer::BuyerRecord;
use crate::payments::credit_note::{CreditNote, CreditNoteNumber};
use crate::payments::exchange_rate::CurrencyAmount;
use crate::payments::issued_receipt::{ConsecutiveNumber, IssuedReceipt};
use crate::payments::payment::{PaymentRecord, PaymentSettlement, SoldPlan};
use crate::payments::plan::Plan;
use crate::payments::processor::ProcessorReversal;
use crate::payments::receipt::ReceiptNumber;
use crate::payments::receipt_terms::{ReceiptTerms, ReceiptTermsRecord};
use crate::payments::seller::Seller;
use crate::payments::tax::SalesTax;
use crate::service::Payments;
use crate::service::fields::within;
use crate::wire::{
    CreditNoteDocument, CustomerDocument, PaymentDocument, ReceiptDocument, ReceiptsDocument, SellerDocument,
    TaxDocument,
};

/// The most receipts in one response.
const MAX_RECEIPTS: u32 = 100;

/// When payments were taken back and came back, by the ledger, in order.
type Settlements = HashMap<TxRef, Vec<(LedgerKind, Timestamp)>>;

/// A purchase, from the ledger.
pub(super) struct Purchase {
    pub(super) entry: LedgerEntry,
    payment: PaymentRef,
    settlements: Settlements,
}

/// The data of an account's receipts, besides its payments.
struct KnownForReceipts {
    plans: Vec<Plan>,
    buyers: Vec<BuyerRecord>,
    settlements: Settlements,
    terms: Vec<ReceiptTermsRecord>,
    /// By the payment, and the document's number within it.
    issued: HashMap<(TxRef, u32), IssuedReceipt>,
}

impl KnownForReceipts {
    /// The terms of a receipt, and whether its buyer owes the tax; `None` if it was issued on no terms.
    fn terms(&self, tx: TxRef) -> Option<(&ReceiptTerms, bool)> {
        let issued = self.issued.get(&(tx, 0))?;
        let record = self.terms.iter().find(|record| record.number == issued.terms)?;
        Some((&record.terms, issued.reverse_charge))
    }

    /// The consecutive number of a receipt or credit note, if it has one.
    fn number(&self, tx: TxRef, part: u32) -> Option<String> {
        self.issued.get(&(tx, part))?.number.as_ref().map(ToString::to_string)
    }
}

impl Payments<'_> {
    /// Receipts for the account's purchases, newest first: at most `limit` (1 to 100) of those before the ledger entry
    /// with the number `before`.
    ///
    /// [`Payments::receipt`] has an example.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key, [`Error::ValidationFailed`], or when the store fails.
    pub async fn receipts(
        self,
        caller: impl Into<Caller<'_>>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<ReceiptsDocument, Error> {
        let account = self.access.authorize(caller, Scope::Read).await?;
        let limit = within("limit", limit, MAX_RECEIPTS)?;
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        // The newest ones read, and one more, which shows whether others precede them.
        let mut newest: VecDeque<(LedgerEntry, PaymentRef)> = VecDeque::new();
        let settlements = self
            .each_purchase(&account, |entry, payment| {
                if before.is_none_or(|before| entry.id < before) {
                    newest.push_back((entry, payment));
                }
                if newest.len() > most + 1 {
                    newest.pop_front();
                }
            })
            .await?;
        let more = newest.len() > most;
        if more {
            newest.pop_front();
        }
        let next = newest.front().filter(|_| more).map(|(entry, _)| entry.id);
        let mut receipts = Vec::with_capacity(newest.len());
        if !newest.is_empty() {
            let known = self.known_for_receipts(&account, settlements).await?;
            for (entry, payment) in newest.iter().rev() {
                receipts.push(self.receipt_of(&account, entry, payment, &known).await?);
            }
        }
        Ok(ReceiptsDocument { org_id: account.id.to_string(), receipts, next })
    }

    /// The receipt with this number, or with a credit note that has it.
    ///
    /// With the shop of the example `sell_a_plan`, for a customer who has bought a plan there:
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sell_a_plan/doc_test.rs"));
    /// # use in_memory::MemoryChain;
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let chain = Arc::new(MemoryChain::default());
    /// # let (shop, customer, quote) = shop::quoted(&chain).await?;
    /// # let payment = chain.pay(customer.address(), quote.recipient.parse()?, quote.amount_atomic.parse()?);
    /// # let claim = serde_json::json!({"signup_nonce": quote.signup_nonce, "tx_hash": payment});
    /// # let claimed = shop.payments().claim(&serde_json::from_value(claim)?).await?;
    /// # let key = claimed.api_key.key();
    /// let list = shop.payments().receipts(Some(key), None, 10).await?;
    /// let receipt = shop.payments().receipt(Some(key), &list.receipts[0].number).await?;
    /// assert_eq!(receipt.plan_id.as_deref(), Some("starter"));
    /// assert_eq!(receipt.payment.token_amount, Some(quote.amount_human));
    /// assert_eq!(receipt.status, "paid");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchReceipt`] when the account has no receipt with this number, and as [`Payments::receipts`].
    pub async fn receipt(self, caller: impl Into<Caller<'_>>, number: &str) -> Result<ReceiptDocument, Error> {
        let account = self.access.authorize(caller, Scope::Read).await?;
        self.receipt_of_account(&account, number).await
    }

    /// The receipt of an account with this number, or with a credit note that has it. For operators: it takes no key of
    /// the account.
    ///
    /// [`Payments::receipt`] has an example.
    ///
    /// # Errors
    /// [`Error::NoSuchReceipt`] when the account has no receipt with this number, [`Error::ValidationFailed`] when it
    /// is no number of a receipt, or when the store fails.
    pub async fn receipt_of_account(self, account: &Account, number: &str) -> Result<ReceiptDocument, Error> {
        let purchase = self.find_purchase(account, number).await?;
        let receipt = self.receipt_for(account, purchase).await?;
        let is_it = |own: &str, reference: &str| [own, reference].iter().any(|one| one.eq_ignore_ascii_case(number));
        let is_note = receipt.credit_notes.iter().any(|note| is_it(&note.number, &note.reference));
        if is_note || is_it(&receipt.number, &receipt.reference) { Ok(receipt) } else { Err(Error::NoSuchReceipt) }
    }

    /// The purchase whose receipt has this number, or would have a credit note with it.
    pub(super) async fn find_purchase(self, account: &Account, number: &str) -> Result<Purchase, Error> {
        let number = self.receipt_number(account, number).await?;
        let mut found = None;
        let settlements = self
            .each_purchase(account, |entry, payment| {
                if ReceiptNumber::of(&payment.tx) == number {
                    found = Some((entry, payment));
                }
            })
            .await?;
        let (entry, payment) = found.ok_or(Error::NoSuchReceipt)?;
        Ok(Purchase { entry, payment, settlements })
    }

    /// The receipt for a purchase.
    pub(super) async fn receipt_for(
        self,
        account: &Account,
        Purchase { entry, payment, settlements }: Purchase,
    ) -> Result<ReceiptDocument, Error> {
        let known = self.known_for_receipts(account, settlements).await?;
        self.receipt_of(account, &entry, &payment, &known).await
    }

    async fn known_for_receipts(self, account: &Account, settlements: Settlements) -> Result<KnownForReceipts, Error> {
        let store = self.state.store()?;
        let (plans, buyers) = (store.plans().await?, store.buyers(&account.id).await?);
        let terms = store.receipt_terms().await?;
        let issued = if terms.is_empty() { Vec::new() } else { store.issued_receipts(&account.id).await? };
        let issued = issued.into_iter().map(|one| ((one.tx, one.part), one)).collect();
        Ok(KnownForReceipts { plans, buyers, settlements, terms, issued })
    }

    /// The number that is derived from a receipt's payment, by that number, its consecutive one, or one of a credit
    /// note.
    async fn receipt_number(self, account: &Account, text: &str) -> Result<ReceiptNumber, Error> {
        let problem = match text.parse() {
            Ok(number) => return Ok(number),
            Err(problem) => problem,
        };
        if let Ok(note) = text.parse::<CreditNoteNumber>() {
            return Ok(note.receipt());
        }
        text.parse::<ConsecutiveNumber>().map_err(|_| Error::field("number", problem))?;
        let issued = self.state.store()?.issued_receipts(&account.id).await?;
        let is_it = |number: &ConsecutiveNumber| number.to_string().eq_ignore_ascii_case(text);
        let found = issued.iter().find(|one| one.number.as_ref().is_some_and(is_it));
        found.map(|one| ReceiptNumber::of(&one.tx)).ok_or(Error::NoSuchReceipt)
    }

    /// Calls `visit` with every purchase of the account, oldest first.
    async fn each_purchase(
        self,
        account: &Account,
        mut visit: impl FnMut(LedgerEntry, PaymentRef),
    ) -> Result<Settlements, Error> {
        let mut settlements = Settlements::new();
        self.each_paid_entry(account, |entry, payment| {
            if LedgerKind::PURCHASES.contains(&entry.kind) {
                visit(entry, payment);
            } else if LedgerKind::SETTLEMENTS.contains(&entry.kind) {
                settlements.entry(payment.tx).or_default().push((entry.kind, entry.created_at));
            }
            true
        })
        .await?;
        Ok(settlements)
    }

    async fn receipt_of(
        self,
        account: &Account,
        entry: &LedgerEntry,
        payment: &PaymentRef,
        known: &KnownForReceipts,
    ) -> Result<ReceiptDocument, Error> {
        let record = self.state.store()?.payment(&payment.tx).await?;
        // Written in the same transaction as the entry, and never deleted.
        let record = record.ok_or(Error::Internal)?;
        let reversed = matches!(record.settlement, PaymentSettlement::Reversed { .. });
        let (mut paid, decimals) = self.payment_document(&record, &known.plans);
        let notes = if record.processor.is_some() {
            let reversals = self.state.store()?.processor_reversals(&payment.tx.hash).await?;
            let amount = ProcessorReversal::amount_of(record.payment.amount, &reversals);
            paid.amount_reversed = (amount.get() > 0).then(|| amount.to_human(decimals.unwrap_or(0)));
            CreditNote::of_reversals(record.payment.amount, &reversals)
        } else {
            let settlements = known.settlements.get(&payment.tx);
            CreditNote::of_removals(&record.payment, settlements.map(Vec::as_slice).unwrap_or_default())
        };
        let status = match paid.amount_reversed {
            _ if reversed => "reversed",
            Some(_) => "partly_reversed",
            None => "paid",
        };
        let terms = known.terms(payment.tx);
        let sales_tax = terms.and_then(|(terms, is_owed)| Some((terms.tax.as_ref()?, is_owed)));
        let taxes = taxes_of_notes(&record, &notes, sales_tax);
        let credit_notes = notes.iter().zip(taxes).map(|(note, tax)| {
            let document = CreditNoteDocument::of(note, decimals);
            let number = known.number(payment.tx, note.number.part()).unwrap_or_else(|| document.number.clone());
            CreditNoteDocument { number, tax, ..document }
        });
        let tax = sales_tax
            .and_then(|(tax, is_owed)| TaxDocument::of(tax, is_owed, in_currency(&record, record.payment.amount)?));
        let seller = terms.map_or(&self.config.seller, |(terms, _)| &terms.seller);
        let Seller { name, address, tax_id, contact } = seller.clone();
        let reference = ReceiptNumber::of(&payment.tx).to_string();
        Ok(ReceiptDocument {
            number: known.number(payment.tx, 0).unwrap_or_else(|| reference.clone()),
            reference,
            tax,
            credit_notes: credit_notes.collect(),
            status: status.to_owned(),
            issued_at: entry.created_at.to_string(),
            seller: SellerDocument { name, address, tax_id, contact },
            customer: CustomerDocument {
                org_id: account.id.to_string(),
                agent_name: account.agent_name.to_string(),
                email: account.email.as_ref().map(ToString::to_string),
            },
            buyer: known.buyers.iter().find(|buyer| buyer.covers(entry.created_at)).map(|found| (&found.buyer).into()),
            plan_id: payment.plan_id.clone(),
            plan_label: record.sold.as_ref().map(|sold| sold.label.clone()),
            credits: entry.amount,
            bonus_credits: record.sold.as_ref().and_then(|sold| sold.bonus_credits),
            payment: paid,
        })
    }

    /// The payment, and the decimals of its token if they are known.
    fn payment_document(self, record: &PaymentRecord, plans: &[Plan]) -> (PaymentDocument, Option<u8>) {
        let payment = &record.payment;
        let chain_id = payment.tx.chain_id;
        let chain = self.config.chains.iter().find(|chain| chain.chain_id == chain_id);
        // A payment that was assigned without a plan is of a token that some plan names, or used to name.
        let named = plans.iter().find(|plan| plan.chain_id == chain_id && plan.token_contract == payment.token);
        let sold = record.sold.clone().or_else(|| named.map(|plan| SoldPlan::of(plan, plan.bonus_credits)));
        let document = PaymentDocument {
            processor: record.processor.as_ref().map(|processor| processor.processor().to_owned()),
            processor_id: record.processor.as_ref().map(|processor| processor.id().to_owned()),
            amount_reversed: None,
            chain_id,
            chain_name: chain.map(|chain| chain.name.clone()),
            tx_hash: payment.tx.hash.to_string(),
            explorer_url: chain.and_then(|chain| transaction_url(&chain.explorer_url, &payment.tx.hash)),
            payer: payment.payer.to_checksummed(),
            recipient: payment.recipient.to_checksummed(),
            token_symbol: sold.as_ref().map(|sold| sold.token_symbol.clone()),
            token_contract: payment.token.to_string(),
            token_amount: sold.as_ref().map(|sold| payment.amount.to_human(sold.token_decimals)),
            amount_atomic: payment.amount.to_string(),
            mined_at: payment.mined_at.to_string(),
            value: record.value.as_ref().map(Into::into),
        };
        (document, sold.map(|sold| sold.token_decimals))
    }
}

/// The tax of each credit note; `None` for a note without one.
fn taxes_of_notes(
    record: &PaymentRecord,
    notes: &[CreditNote],
    sales_tax: Option<(&SalesTax, bool)>,
) -> Vec<Option<TaxDocument>> {
    let Some((tax, is_owed)) = sales_tax else { return vec![None; notes.len()] };
    let value_of = |amount| in_currency(record, amount).map(|(value, _)| value);
    let included = CreditNote::taxes(notes, tax.rate, value_of);
    let documents = notes.iter().zip(included);
    documents
        .map(|(note, included)| TaxDocument::with(tax, is_owed, in_currency(record, note.amount)?, included?))
        .collect()
}

/// The value of a payment, or a part of it, in a currency. Chains reverse whole payments, so their value is the stored
/// one.
fn in_currency(record: &PaymentRecord, amount: TokenUnits) -> Option<(CurrencyAmount, &str)> {
    match (&record.processor, &record.value, &record.sold) {
        (Some(_), _, Some(sold)) => {
            let amount = CurrencyAmount::of_minor(amount.get(), sold.token_decimals.into())?;
            Some((amount, sold.token_symbol.as_str()))
        }
        (None, Some(value), _) => Some((value.converted.as_ref()?.amount, value.currency.code())),
        _ => None,
    }
}
