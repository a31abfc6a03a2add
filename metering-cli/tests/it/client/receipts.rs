//! `metering receipts`.

use super::{client, misuses, sends};
use crate::stand_in::Reply;

const NUMBER: &str = "R-8453-9F86D081884C7D65";

fn receipt(amount: &str) -> String {
    format!(
        r#"{{"number":"{NUMBER}","status":"paid","issued_at":"2026-11-21T08:00:00.000Z","seller":{{"name":"Shop\u0007","address":["1 High Street","Oxford"],"tax_id":"GB123","contact":null}},"customer":{{"org_id":"org_1","agent_name":"bot","email":null}},"buyer":{{"name":"Acme GmbH","address":["Weg 1","10115 Berlin"],"tax_id":null}},"plan_id":"starter","plan_label":"Starter","credits":11.0000000001,"bonus_credits":1,"payment":{{"chain_id":8453,"chain_name":"base","tx_hash":"0x1","explorer_url":null,"payer":"0x2","recipient":"0x3","token_symbol":"USDC","token_contract":"0x4","token_amount":{amount},"amount_atomic":"5003817","mined_at":"2026-11-21T07:59:00.000Z"}},"tax":{{"name":"VAT","percent":"19","currency":"EUR","gross":"4.31","net":"3.62","amount":"0.69","note":null}},"credit_notes":[{{"number":"C-8453-9F86D081884C7D65-1","reference":"C-8453-9F86D081884C7D65-1","tax":null,"issued_at":"2026-12-01T12:00:00.000Z","amount":"2.5","reason":"Ticket 17","cancelled_at":null}}]}}"#
    )
}

fn list(receipts: &str, next: &str) -> Reply {
    Reply::ok(format!(r#"{{"org_id":"org_1","receipts":[{receipts}],"next":{next}}}"#))
}

#[test]
fn receipts_are_listed_and_older_ones_are_announced() {
    let (program, service) = client([("/credits/receipts", list(&receipt("\"5.003817\""), "null"))]);
    let row = format!("{NUMBER} 2026-11-21T08:00:00.000Z paid Starter +11.0000000001 5.003817 USDC");
    program.tabulates(&[("receipts", &["NUMBER ISSUED STATUS PLAN CREDITS PAID", &row])]);
    service.only("/credits/receipts", list(&receipt("null"), "42"));
    let ran = program.run("receipts").expect(0);
    assert!(ran.stdout.contains("5003817 units of USDC"), "{ran:?}");
    assert!(ran.stderr.contains("`metering receipts --before 42`"), "{ran:?}");
    service.only("/credits/receipts", list("", "null"));
    assert_eq!(program.run("receipts").success(), "No purchases yet.\n");
    sends(
        &program,
        &service,
        &[
            ("receipts", "GET /credits/receipts?limit=20", ""),
            ("receipts --limit 5 --before 42 --json", "GET /credits/receipts?before=42&limit=5", "\"next\":null"),
        ],
    );
    misuses(&program, &service, &["receipts --limit 0", "receipts --limit 101", "receipts --before x"]);
}

#[test]
fn a_receipt_is_shown_in_full() {
    let (program, _service) = client([("/credits/receipt", Reply::ok(receipt("\"5.003817\"")))]);
    let lines = [
        "Receipt R-8453-9F86D081884C7D65",
        "Seller Shop\u{fffd}",
        "Address 1 High Street, Oxford",
        "Contact -",
        "Buyer Acme GmbH",
        "Buyer address Weg 1, 10115 Berlin",
        "Buyer tax number -",
        "Credits 11.0000000001",
        "Paid 5.003817 USDC",
        "Tax VAT 0.69 EUR (19 %), 3.62 EUR without it",
        "Chain base (8453)",
        "Credit note C-8453-9F86D081884C7D65-1 of 2026-12-01T12:00:00.000Z, 2.5 USDC: Ticket 17",
    ];
    let line = format!("receipts show {NUMBER}");
    program.tabulates(&[(line.as_str(), &lines)]);
    assert_eq!(program.run(&format!("{line} --json")).success(), format!("{}\n", receipt("\"5.003817\"")));
    super::fails_with(&line, &[("/credits/receipt", 404, "not_found", 4)]);
}
