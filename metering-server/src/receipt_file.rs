//! Receipts as PDF files. A file is made from the same document as the page, whenever it is asked for, and is always the
//! same.

mod font;
mod sheet;

use http::{HeaderValue, StatusCode};
use metering_core::wire::{BuyerDocument, CreditNoteDocument, PaymentDocument, ReceiptDocument, SellerDocument};

use crate::http::{Reply, bytes, with_headers};
use font::Font;
use sheet::{About, Ink, LEFT, RIGHT, Sheet, TOP};

/// Where the second column begins, and where the values of the table do.
const SECOND: i16 = 330;
const VALUES: i16 = 170;

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

/// The file to download: of the receipt, or of that one of its credit notes which has the number.
pub(crate) fn reply(receipt: &ReceiptDocument, number: &str) -> Reply {
    let note = receipt.credit_notes.iter().find(|note| note.number.eq_ignore_ascii_case(number));
    let reply = bytes(StatusCode::OK, HeaderValue::from_static("application/pdf"), file(receipt, note).into());
    let number = note.map_or(&receipt.number, |note| &note.number);
    let disposition = format!("attachment; filename=\"{number}.pdf\"");
    with_headers(reply, vec![("content-disposition", disposition)])
}

fn file(receipt: &ReceiptDocument, note: Option<&CreditNoteDocument>) -> Vec<u8> {
    let (kind, number, issued_at) = match note {
        Some(note) => ("Credit note", &note.number, &note.issued_at),
        None => ("Receipt", &receipt.number, &receipt.issued_at),
    };
    let mut sheet = Sheet::new();
    sheet.text(LEFT, 20, Ink::Strong, kind);
    sheet.down(20);
    sheet.text(LEFT, 10, Ink::Soft, number);
    let under_number = sheet.y();
    sheet.move_to(TOP);
    column(&mut sheet, SECOND, &seller(&receipt.seller));
    sheet.move_to(sheet.y().min(under_number));
    sheet.down(24);
    if let Some(buyer) = &receipt.buyer {
        sheet.text(LEFT, 9, Ink::Soft, "Billed to");
        sheet.down(15);
        column(&mut sheet, LEFT, &billed_to(buyer));
        sheet.down(24);
    }
    let words = match note {
        Some(note) => {
            let at = note.cancelled_at.as_ref();
            at.map(|at| format!("Cancelled on {}: the credits are back on the account.", day(at)))
        }
        None => reversed(receipt),
    };
    if let Some(words) = words {
        paragraph(&mut sheet, &words);
    }
    let (sum, rows) = match note {
        Some(note) => (credited(note, &receipt.payment), note_rows(note, receipt)),
        None => (paid(&receipt.payment), rows(receipt)),
    };
    sheet.text(LEFT, 16, Ink::Strong, &sum);
    sheet.rule();
    sheet.down(28);
    for (name, value) in &rows {
        row(&mut sheet, name, value);
    }
    if !is_covered(receipt, &rows) {
        sheet.down(10);
        paragraph(&mut sheet, "Some characters cannot be shown in this file. Print the receipt's page instead.");
    }
    let title = format!("{kind} {number}");
    sheet.finish(&About { title: &title, author: &receipt.seller.name, created_at: issued_at })
}

/// Lines below each other, of which the first is darker.
fn column(sheet: &mut Sheet, x: i16, lines: &[String]) {
    let width = RIGHT.saturating_sub(x).unsigned_abs();
    let mut ink = Ink::Strong;
    for line in lines {
        for part in Font::get().lines(line, 10, width) {
            sheet.text(x, 10, ink, &part);
            sheet.down(14);
        }
        ink = Ink::Soft;
    }
}

fn row(sheet: &mut Sheet, name: &str, value: &str) {
    sheet.text(LEFT, 10, Ink::Soft, name);
    for part in Font::get().lines(value, 10, RIGHT.saturating_sub(VALUES).unsigned_abs()) {
        sheet.text(VALUES, 10, Ink::Strong, &part);
        sheet.down(14);
    }
    sheet.down(5);
}

fn paragraph(sheet: &mut Sheet, text: &str) {
    for part in Font::get().lines(text, 10, RIGHT.saturating_sub(LEFT).unsigned_abs()) {
        sheet.text(LEFT, 10, Ink::Strong, &part);
        sheet.down(14);
    }
    sheet.down(10);
}

fn seller(seller: &SellerDocument) -> Vec<String> {
    let tax = seller.tax_id.as_ref().map(|tax_id| format!("Tax number {tax_id}"));
    let lines = [seller.name.clone()].into_iter().chain(seller.address.iter().cloned());
    lines.chain(tax).chain(seller.contact.clone()).collect()
}

fn billed_to(buyer: &BuyerDocument) -> Vec<String> {
    let tax = buyer.tax_id.as_ref().map(|tax_id| format!("Tax number {tax_id}"));
    [buyer.name.clone()].into_iter().chain(buyer.address.iter().cloned()).chain(tax).collect()
}

fn rows(receipt: &ReceiptDocument) -> Vec<(&'static str, String)> {
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
    rows.extend(payment.value.as_ref().map(|value| ("Value", value.in_words(payment.token_symbol.as_deref()))));
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
    rows
}

/// The rows of a credit note.
fn note_rows(note: &CreditNoteDocument, receipt: &ReceiptDocument) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("Date", day(&note.issued_at)),
        ("For receipt", format!("{} of {}", receipt.number, day(&receipt.issued_at))),
        ("Credited", credited(note, &receipt.payment)),
        ("Of", paid(&receipt.payment)),
        ("Account", account(receipt)),
    ];
    rows.extend(Some(("Reason", note.reason.clone())).filter(|(_, reason)| !reason.is_empty()));
    rows
}

fn account(receipt: &ReceiptDocument) -> String {
    let customer = &receipt.customer;
    let email = customer.email.as_ref().map_or_else(String::new, |email| format!(", {email}"));
    format!("{}{email}, {}", customer.agent_name, customer.org_id)
}

/// What a credit note takes back.
fn credited(note: &CreditNoteDocument, payment: &PaymentDocument) -> String {
    note.credited(payment.token_symbol.as_deref(), &paid(payment))
}

/// What was taken back, if anything.
fn reversed(receipt: &ReceiptDocument) -> Option<String> {
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
fn paid(payment: &PaymentDocument) -> String {
    match (&payment.token_amount, &payment.token_symbol) {
        (Some(amount), Some(symbol)) => format!("{amount} {symbol}"),
        _ => format!("{} of {}", payment.amount_atomic, payment.token_contract),
    }
}

/// The day of a time in RFC 3339 and UTC, as the page has it: `21 November 2026`.
fn day(text: &str) -> String {
    let part = |from: usize, to: usize| text.get(from..to)?.parse::<usize>().ok();
    let month = part(5, 7).and_then(|month| MONTHS.get(month.checked_sub(1)?));
    match (part(8, 10), month, text.get(..4)) {
        (Some(day), Some(month), Some(year)) => format!("{day} {month} {year}"),
        _ => text.to_owned(),
    }
}

/// Whether the font has everything that people wrote.
fn is_covered(receipt: &ReceiptDocument, rows: &[(&str, String)]) -> bool {
    let font = Font::get();
    let buyer = receipt.buyer.as_ref().map(billed_to).unwrap_or_default();
    seller(&receipt.seller)
        .iter()
        .chain(&buyer)
        .chain(rows.iter().map(|(_, value)| value))
        .all(|text| font.covers(text))
}

#[cfg(test)]
mod tests {
    use metering_core::payments::{ConvertedAmount, PaymentValue};
    use metering_core::wire::CustomerDocument;

    use super::sheet::tests::lines;
    use super::*;

    fn receipt() -> ReceiptDocument {
        let text = str::to_owned;
        ReceiptDocument {
            number: text("R-8453-9F86D081884C7D65"),
            status: text("paid"),
            issued_at: text("2026-11-21T12:00:00.512Z"),
            seller: SellerDocument {
                name: text("Acme Data Ltd"),
                address: vec![text("1 High Street"), text("London")],
                tax_id: Some(text("GB 123")),
                contact: None,
            },
            customer: CustomerDocument {
                org_id: text("org_b9jTe1UNsLWeVpUjI3gF"),
                agent_name: text("my-agent"),
                email: Some(text("jo@example.com")),
            },
            buyer: Some(BuyerDocument {
                name: text("Żółw & Söhne"),
                address: vec![text("Weg 1"), text("10115 Berlin")],
                tax_id: Some(text("DE 123456789")),
            }),
            plan_id: Some(text("starter")),
            plan_label: Some(text("Starter")),
            credits: "10.5".parse().unwrap(),
            bonus_credits: "0.5".parse().ok(),
            payment: PaymentDocument {
                processor: None,
                processor_id: None,
                amount_reversed: None,
                chain_id: 8453,
                chain_name: Some(text("Base")),
                tx_hash: format!("0x{}", "9f".repeat(32)),
                explorer_url: None,
                payer: format!("0x{}", "Ab".repeat(20)),
                recipient: format!("0x{}", "cD".repeat(20)),
                token_symbol: Some(text("USDC")),
                token_contract: format!("0x{}", "c0".repeat(20)),
                token_amount: Some(text("5")),
                amount_atomic: text("5000000"),
                mined_at: text("2026-11-01T12:00:00.000Z"),
                value: None,
            },
            credit_notes: Vec::new(),
        }
    }

    #[test]
    fn a_file_says_what_the_page_says() {
        let lines = lines(&file(&receipt(), None));
        let expected = [
            "Receipt",
            "R-8453-9F86D081884C7D65",
            "Acme Data Ltd",
            "1 High Street",
            "London",
            "Tax number GB 123",
            "Billed to",
            "Żółw & Söhne",
            "Weg 1",
            "10115 Berlin",
            "Tax number DE 123456789",
            "5 USDC",
            "21 November 2026",
            "1 November 2026",
            "Starter",
            "10.5, 0.5 of them as a bonus",
            "my-agent, jo@example.com, org_b9jTe1UNsLWeVpUjI3gF",
            "Base (8453)",
        ];
        for text in expected {
            assert!(lines.iter().any(|line| line == text), "{text:?} in {lines:?}");
        }
        assert!(lines.concat().contains(&receipt().payment.tx_hash), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("cannot be shown") || line.contains("Reversed")), "{lines:?}");
        assert_eq!(file(&receipt(), None), file(&receipt(), None), "always the same");
    }

    #[test]
    fn a_file_has_the_value_if_there_is_one() {
        let line = |receipt: &ReceiptDocument| lines(&file(receipt, None)).join(" ");
        assert!(!line(&receipt()).contains("Value"));
        let value = PaymentValue { currency: "EUR".parse().unwrap(), converted: None };
        let mut receipt = receipt();
        receipt.payment.value = Some((&value).into());
        assert!(line(&receipt).contains("Value None in EUR: no exchange rate was known"), "{}", line(&receipt));
        let (amount, rate) = ("4.31".parse().unwrap(), "0.8612".parse().unwrap());
        let as_of = "2026-11-27T15:00:00Z".parse().unwrap();
        let converted = Some(ConvertedAmount { amount, rate, source: "ECB".to_owned(), as_of });
        receipt.payment.value = Some((&PaymentValue { converted, ..value }).into());
        let words = "4.31 EUR at 0.8612 EUR per USDC (ECB, 2026-11-27 15:00 UTC)";
        assert!(line(&receipt).contains(words), "{}", line(&receipt));
    }

    #[test]
    fn a_file_says_what_it_lacks() {
        let mut receipt = receipt();
        receipt.status = "reversed".to_owned();
        receipt.buyer = Some(BuyerDocument { name: "株式会社".to_owned(), address: Vec::new(), tax_id: None });
        receipt.payment.token_amount = None;
        let text = lines(&file(&receipt, None)).join(" ");
        assert!(text.contains("Reversed: a reorganisation"), "{text}");
        assert!(text.contains("Some characters cannot be shown in this file."), "{text}");
        assert!(text.contains("5000000 of 0xc0"), "{text}");
    }

    #[test]
    fn a_processors_payment_has_no_chain() {
        let mut receipt = receipt();
        receipt.payment.processor = Some("stripe".to_owned());
        receipt.payment.processor_id = Some("pi_1".to_owned());
        receipt.payment.amount_reversed = Some("2.5".to_owned());
        let lines = lines(&file(&receipt, None));
        assert!(["stripe", "pi_1"].iter().all(|text| lines.iter().any(|line| line == text)), "{lines:?}");
        assert!(lines.join(" ").contains("Reversed: 2.5 USDC was refunded or disputed"), "{lines:?}");
        assert!(!lines.iter().any(|line| line == "Chain" || line == "Transaction"), "{lines:?}");
    }

    #[test]
    fn a_credit_note_is_a_file_of_its_own() {
        let (mut receipt, number) = (receipt(), "C-8453-9F86D081884C7D65-1".to_owned());
        receipt.credit_notes.push(CreditNoteDocument {
            number: number.clone(),
            issued_at: "2026-12-01T12:00:00.000Z".to_owned(),
            amount: Some("2.5".to_owned()),
            reason: "Ticket 17".to_owned(),
            cancelled_at: None,
        });
        let text = lines(&file(&receipt, None)).join(" ");
        assert!(text.contains(&format!("Credit note {number} of 1 December 2026, 2.5 USDC")), "{text}");
        let note = lines(&file(&receipt, receipt.credit_notes.first()));
        let expected =
            ["Credit note", &number, "Acme Data Ltd", "Żółw & Söhne", "2.5 USDC", "1 December 2026", "Ticket 17"];
        for text in expected.into_iter().chain(["R-8453-9F86D081884C7D65 of 21 November 2026"]) {
            assert!(note.iter().any(|line| line == text), "{text:?} in {note:?}");
        }
        assert!(!note.join(" ").contains("Cancelled"), "{note:?}");
        receipt.credit_notes[0].cancelled_at = Some("2026-12-03T12:00:00.000Z".to_owned());
        let cancelled = lines(&file(&receipt, receipt.credit_notes.first())).join(" ");
        assert!(cancelled.contains("Cancelled on 3 December 2026"), "{cancelled}");
        let reply = reply(&receipt, &number.to_lowercase());
        assert_eq!(reply.headers()["content-disposition"], format!("attachment; filename=\"{number}.pdf\""));
    }

    #[test]
    fn the_file_has_the_receipts_name() {
        let reply = reply(&receipt(), "R-8453-9F86D081884C7D65");
        assert_eq!(reply.headers()["content-type"], "application/pdf");
        assert_eq!(reply.headers()["content-disposition"], "attachment; filename=\"R-8453-9F86D081884C7D65.pdf\"");
        assert_eq!(reply.headers()["cache-control"], "no-store");
    }
}
