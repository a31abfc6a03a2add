//! Receipts as PDF files. Each request builds the file anew, from the same document as the page; the result is always
//! the same.

mod font;
mod rows;
mod sheet;

use http::{HeaderValue, StatusCode};
use metering_core::wire::{CreditNoteDocument, ReceiptDocument};

use crate::http::{Reply, bytes, with_headers};
use font::Font;
use rows::{billed_to, credited, day, note_rows, paid, reversed, rows, seller};
use sheet::{About, Ink, LEFT, RIGHT, Sheet, TOP};

/// Where the second column begins, and where the values of the table do.
const SECOND: i16 = 330;
const VALUES: i16 = 170;

/// The file to download: of the receipt, or of that one of its credit notes which has the number.
pub(crate) fn reply(receipt: &ReceiptDocument, number: &str) -> Reply {
    let note = receipt
        .credit_notes
        .iter()
        .find(|note| [&note.number, &note.reference].iter().any(|one| one.eq_ignore_ascii_case(number)));
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

/// A cell of several lines; the first one is darker.
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
    use metering_core::wire::{
        BuyerDocument, CustomerDocument, PaymentDocument, SellerDocument, TaxDocument, ValueDocument,
    };

    use super::sheet::tests::lines;
    use super::*;

    fn receipt() -> ReceiptDocument {
        let text = str::to_owned;
        ReceiptDocument {
            number: text("R-8453-9F86D081884C7D65"),
            reference: text("R-8453-9F86D081884C7D65"),
            tax: None,
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
    fn a_file_has_the_tax_and_both_numbers() {
        let tax = |note: Option<&str>| TaxDocument {
            name: "VAT".to_owned(),
            percent: "19".to_owned(),
            currency: "EUR".to_owned(),
            gross: "4.31".to_owned(),
            net: "3.62".to_owned(),
            amount: "0.69".to_owned(),
            note: note.map(str::to_owned),
        };
        let owed = "Reverse charge: the recipient is liable for VAT.";
        let receipt = ReceiptDocument { number: "INV-00007".to_owned(), tax: Some(tax(Some(owed))), ..receipt() };
        let lines = lines(&file(&receipt, None));
        for text in ["INV-00007", "R-8453-9F86D081884C7D65", "3.62 EUR", "0.69 EUR, VAT 19 %", "4.31 EUR", owed] {
            assert!(lines.iter().any(|line| line == text), "{text:?} in {lines:?}");
        }
    }

    #[test]
    fn a_value_that_is_the_amount_with_tax_is_shown_once() {
        let text = |text: &str| Some(text.to_owned());
        let value = ValueDocument {
            currency: "EUR".to_owned(),
            amount: text("4.31"),
            rate: text("0.8612"),
            rate_source: text("ECB"),
            rate_as_of: text("2026-11-27T15:00:00Z"),
        };
        // the amount with tax, the rows with it and the rate
        for (gross, expected) in [
            ("4.31", ["Exchange rate 0.8612 EUR per USDC (ECB, 2026-11-27 15:00 UTC)", "With tax 4.31 EUR"]),
            ("5.00", ["Value 4.31 EUR at 0.8612 EUR per USDC (ECB, 2026-11-27 15:00 UTC)", "With tax 5.00 EUR"]),
        ] {
            let mut receipt = receipt();
            receipt.payment.value = Some(value.clone());
            receipt.tax = Some(TaxDocument {
                name: "VAT".to_owned(),
                percent: "19".to_owned(),
                currency: "EUR".to_owned(),
                gross: gross.to_owned(),
                net: "3.62".to_owned(),
                amount: "0.69".to_owned(),
                note: None,
            });
            let text = lines(&file(&receipt, None)).join(" ");
            assert!(expected.iter().all(|row| text.contains(row)), "{text}");
            assert_eq!(text.matches("4.31 EUR").count(), 1, "{text}");
        }
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
            reference: number.clone(),
            tax: None,
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
