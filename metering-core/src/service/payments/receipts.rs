//! Receipts for account holders, made from the ledger, the payments' records and the plans.

use std::collections::{HashMap, VecDeque};

use crate::access::account::Account;
use crate::access::credentials::Caller;
use crate::access::scope::Scope;
use crate::chains::explorer::transaction_url;
use crate::chains::transaction::TxRef;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::money::ledger::{LedgerEntry, LedgerKind, PaymentRef};
use crate::payments::buyer::BuyerRecord;
use crate::payments::credit_note::{CreditNote, CreditNoteNumber};
use crate::payments::payment::{PaymentRecord, PaymentSettlement, SoldPlan};
use crate::payments::plan::Plan;
use crate::payments::processor::ProcessorReversal;
use crate::payments::receipt::ReceiptNumber;
use crate::service::fields::within;
use crate::service::{Payments, Seller};
use crate::wire::{
    CreditNoteDocument, CustomerDocument, PaymentDocument, ReceiptDocument, ReceiptsDocument, SellerDocument,
};

/// The most receipts in one response.
const MAX_RECEIPTS: u32 = 100;

/// When payments were taken back and came back, by the ledger, in order.
type Settlements = HashMap<TxRef, Vec<(LedgerKind, Timestamp)>>;

/// A purchase, as the ledger has it.
pub(super) struct Purchase {
    pub(super) entry: LedgerEntry,
    payment: PaymentRef,
    settlements: Settlements,
}

/// What receipts of an account are made from, besides its payments.
struct KnownForReceipts {
    plans: Vec<Plan>,
    buyers: Vec<BuyerRecord>,
    settlements: Settlements,
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
        // The newest so far, and one more, which shows whether others precede them.
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
        let note = number.parse::<CreditNoteNumber>().ok();
        let of = note.map_or_else(|| receipt_number(number), |note| Ok(note.receipt()))?;
        let purchase = self.find_purchase(&account, of).await?;
        let receipt = self.receipt_for(&account, purchase).await?;
        let has = |note: CreditNoteNumber| receipt.credit_notes.iter().any(|found| found.number == note.to_string());
        if note.is_none_or(has) { Ok(receipt) } else { Err(Error::NoSuchReceipt) }
    }

    /// The purchase whose receipt has this number.
    pub(super) async fn find_purchase(self, account: &Account, number: ReceiptNumber) -> Result<Purchase, Error> {
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
        Ok(KnownForReceipts { plans: store.plans().await?, buyers: store.buyers(&account.id).await?, settlements })
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
            reversals.iter().filter_map(CreditNote::of_reversal).collect()
        } else {
            let settlements = known.settlements.get(&payment.tx);
            CreditNote::of_removals(&record.payment, settlements.map(Vec::as_slice).unwrap_or_default())
        };
        let status = match paid.amount_reversed {
            _ if reversed => "reversed",
            Some(_) => "partly_reversed",
            None => "paid",
        };
        let Seller { name, address, tax_id, contact } = self.config.seller.clone();
        Ok(ReceiptDocument {
            number: ReceiptNumber::of(&payment.tx).to_string(),
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
            credit_notes: notes.iter().map(|note| CreditNoteDocument::of(note, decimals)).collect(),
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

pub(super) fn receipt_number(text: &str) -> Result<ReceiptNumber, Error> {
    text.parse().map_err(|problem| Error::field("number", problem))
}
