//! The contents of a receipt or a credit note, as texts.

use metering_core::wire::{
    BuyerDocument, CreditNoteDocument, PaymentDocument, ReceiptDocument, SellerDocument, TaxDocument, ValueDocument,
};

/// The name of a value, and the value.
pub(super) type Row = (&'static str, String);

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(super) fn seller(seller: &SellerDocument) -> Vec<String> {
    let tax = seller.tax_id.as_ref().map(|tax_id| format!("Tax number {tax_id}"));
    let lines = [seller.name.clone()].into_iter().chain(seller.address.iter().cloned());
    lines.chain(tax).chain(seller.contact.clone()).collect()
}

pub(super) fn billed_to(buyer: &BuyerDocument) -> Vec<String> {
    let tax = buyer.tax_id.as_ref().map(|tax_id| format!("Tax number {tax_id}"));
    [buyer.name.clone()].into_iter().chain(buyer.address.iter().cloned()).chain(tax).collect()
}

pub(super) fn rows(receipt: &ReceiptDocument) -> Vec<Row> {
    let ReceiptDocument { payment, plan_label, plan_id, .. } = receipt;
    let plan = plan_label.as_ref().or(plan_id.as_ref()).map_or("Assigned by the operator", String::as_str);
    let bonus = receipt.bonus_credits.filter(|bonus| bonus.is_positive());
    let bonus = bonus.map_or_else(String::new, |bonus| format!(", {bonus} of them as a bonus"));
    let chain = match &payment.chain_name {
        Some(name) => format!("{name} ({})", payment.chain_id),
        None => payment.chain_id.to_string(),
    };
    let mut rows = vec![
        ("Date", day(&receipt.issued_at)),
        ("Paid on", day(&payment.mined_at)),
        ("Plan", plan.to_owned()),
        ("Credits", format!("{}{bonus}", receipt.credits)),
        ("Account", account(receipt)),
        ("Amount", paid(payment)),
    ];
    rows.extend(payment.value.as_ref().map(|value| value_row(value, receipt)));
    rows.extend(receipt.tax.iter().flat_map(tax_rows));
    match (&payment.processor, &payment.processor_id) {
        (Some(processor), Some(id)) => rows.extend([("Paid by", processor.clone()), ("Payment", id.clone())]),
        _ => rows.extend([
            ("Chain", chain),
            ("Transaction", payment.tx_hash.clone()),
            ("Paid from", payment.payer.clone()),
            ("Paid to", payment.recipient.clone()),
        ]),
    }
    rows.extend(receipt.credit_notes.iter().map(|note| {
        let cancelled = if note.cancelled_at.is_some() { ", cancelled" } else { "" };
        let sum = credited(note, payment);
        ("Credit note", format!("{} of {}, {sum}{cancelled}", note.number, day(&note.issued_at)))
    }));
    rows.extend(reference(&receipt.number, &receipt.reference));
    rows
}

/// The value of the payment, with its rate. If that is the amount with tax, which has a row of its own, only the rate.
fn value_row(value: &ValueDocument, receipt: &ReceiptDocument) -> Row {
    let symbol = receipt.payment.token_symbol.as_deref();
    let is_taxed = |tax: &TaxDocument| value.amount.as_ref() == Some(&tax.gross) && value.currency == tax.currency;
    let rate = receipt.tax.as_ref().filter(|tax| is_taxed(tax)).and_then(|_| value.rate_in_words(symbol));
    rate.map_or_else(|| ("Value", value.in_words(symbol)), |rate| ("Exchange rate", rate))
}

/// The rows of a credit note.
pub(super) fn note_rows(note: &CreditNoteDocument, receipt: &ReceiptDocument) -> Vec<Row> {
    let mut rows = vec![
        ("Date", day(&note.issued_at)),
        ("For receipt", format!("{} of {}", receipt.number, day(&receipt.issued_at))),
        ("Credited", credited(note, &receipt.payment)),
        ("Of", paid(&receipt.payment)),
        ("Account", account(receipt)),
    ];
    rows.extend(note.tax.iter().flat_map(tax_rows));
    rows.extend(Some(("Reason", note.reason.clone())).filter(|(_, reason)| !reason.is_empty()));
    rows.extend(reference(&note.number, &note.reference));
    rows
}

fn tax_rows(tax: &TaxDocument) -> Vec<Row> {
    let TaxDocument { name, percent, currency, gross, net, amount, note } = tax;
    let mut rows = vec![
        ("Without tax", format!("{net} {currency}")),
        ("Tax", format!("{amount} {currency}, {name} {percent} %")),
        ("With tax", format!("{gross} {currency}")),
    ];
    rows.extend(note.clone().map(|note| ("Note", note)));
    rows
}

/// The number that follows from the payment, if the receipt's own number does not.
fn reference(number: &str, reference: &str) -> Option<Row> {
    (number != reference).then(|| ("Reference", reference.to_owned()))
}

fn account(receipt: &ReceiptDocument) -> String {
    let customer = &receipt.customer;
    let email = customer.email.as_ref().map_or_else(String::new, |email| format!(", {email}"));
    format!("{}{email}, {}", customer.agent_name, customer.org_id)
}

/// The amount that a credit note takes back.
pub(super) fn credited(note: &CreditNoteDocument, payment: &PaymentDocument) -> String {
    note.credited(payment.token_symbol.as_deref(), &paid(payment))
}

/// The amount taken back, if any.
pub(super) fn reversed(receipt: &ReceiptDocument) -> Option<String> {
    let PaymentDocument { processor, amount_reversed, token_symbol, .. } = &receipt.payment;
    match (processor, amount_reversed) {
        (Some(_), Some(amount)) => {
            let symbol = token_symbol.as_deref().unwrap_or_default();
            Some(format!("Reversed: {amount} {symbol} was refunded or disputed, and its credits were taken back."))
        }
        _ if receipt.status == "reversed" => Some(
            "Reversed: a reorganisation of its chain removed this payment, and the credits were taken back.".to_owned(),
        ),
        _ => None,
    }
}

/// The amount in tokens; in the smallest unit when the token is no longer known.
pub(super) fn paid(payment: &PaymentDocument) -> String {
    match (&payment.token_amount, &payment.token_symbol) {
        (Some(amount), Some(symbol)) => format!("{amount} {symbol}"),
        _ => format!("{} of {}", payment.amount_atomic, payment.token_contract),
    }
}

/// The day of a time in RFC 3339 and UTC, as the page has it: `21 November 2026`.
pub(super) fn day(text: &str) -> String {
    let part = |from: usize, to: usize| text.get(from..to)?.parse::<usize>().ok();
    let month = part(5, 7).and_then(|month| MONTHS.get(month.checked_sub(1)?));
    match (part(8, 10), month, text.get(..4)) {
        (Some(day), Some(month), Some(year)) => format!("{day} {month} {year}"),
        _ => text.to_owned(),
    }
}
