//! The tax, the numbers and the credit notes of receipts.

use std::time::Duration;

use metering_core::payments::{ReceiptTerms, SalesTax, Seller};
use metering_core::wire::{BuyerRequest, ProcessorPaymentRequest, ProcessorReversalRequest, ReceiptDocument};
use metering_core::{AccountId, ApiKey, Clock, PaymentStore};

use super::scene::Scene;

fn terms(rate: &str) -> ReceiptTerms {
    let seller = Seller { name: format!("Seller at {rate}"), tax_id: Some("DE 1".to_owned()), ..Seller::default() };
    let tax = SalesTax { name: "VAT".to_owned(), rate: rate.parse().unwrap(), reverse_charge: true };
    ReceiptTerms { seller, tax: Some(tax), numbering: Some("INV-".parse().unwrap()) }
}

async fn pay(scene: &Scene, account: &AccountId, id: &str) {
    let paid = ProcessorPaymentRequest {
        processor: Some("paddle".to_owned()),
        id: Some(id.to_owned()),
        org_id: Some(account.to_string()),
        amount: Some("11.90".to_owned()),
        currency: Some("EUR".to_owned()),
        credits: "100".parse().ok(),
        ..ProcessorPaymentRequest::default()
    };
    scene.service.payments().credit_from_processor(&paid).await.unwrap();
}

/// The newest receipt.
async fn newest(scene: &Scene, key: &ApiKey) -> ReceiptDocument {
    scene.service.payments().receipts(Some(key), None, 1).await.unwrap().receipts.remove(0)
}

fn tax(receipt: &ReceiptDocument) -> Option<[&str; 3]> {
    receipt.tax.as_ref().map(|tax| [&*tax.net, &*tax.amount, &*tax.percent])
}

#[tokio::test]
async fn a_receipt_keeps_its_seller_tax_and_number() {
    let scene = Scene::new().await;
    let (key, account) = scene.account_without_wallet().await;
    pay(&scene, &account, "txn_0").await;
    let before = newest(&scene, &key).await;
    assert_eq!((tax(&before), &before.number), (None, &before.reference));
    scene.store.set_receipt_terms(terms("0.19"), scene.clock.now()).await.unwrap();
    pay(&scene, &account, "txn_1").await;
    let first = newest(&scene, &key).await;
    assert_eq!((first.number.as_str(), first.seller.name.as_str()), ("INV-00001", "Seller at 0.19"));
    assert_eq!(tax(&first), Some(["10.00", "1.90", "19"]));
    scene.store.set_receipt_terms(terms("0.07"), scene.clock.now()).await.unwrap();
    for number in ["INV-00001", "inv-00001", first.reference.as_str()] {
        let found = scene.service.payments().receipt(Some(&key), number).await.unwrap();
        assert_eq!((tax(&found), &found.seller.name), (tax(&first), &first.seller.name), "{number}");
    }
    assert!(scene.service.payments().receipt(Some(&key), "INV-00002").await.is_err());
    pay(&scene, &account, "txn_2").await;
    assert_eq!(tax(&newest(&scene, &key).await), Some(["11.12", "0.78", "7"]));
    let old = scene.service.payments().receipt(Some(&key), &before.reference).await.unwrap();
    assert_eq!((tax(&old), &old.number), (None, &before.number));
}

#[tokio::test]
async fn a_buyer_of_another_country_owes_the_tax() {
    let scene = Scene::new().await;
    let (key, account) = scene.account_without_wallet().await;
    scene.store.set_receipt_terms(terms("0.19"), scene.clock.now()).await.unwrap();
    pay(&scene, &account, "txn_1").await;
    let buyer = r#"{"name": "Acme", "tax_id": "FR 2"}"#;
    let buyer: BuyerRequest = serde_json::from_str(buyer).unwrap();
    scene.clock.pass(Duration::from_secs(1));
    scene.service.payments().set_buyer(Some(&key), &buyer).await.unwrap();
    pay(&scene, &account, "txn_2").await;
    let owed = newest(&scene, &key).await;
    assert_eq!(tax(&owed), Some(["11.90", "0.00", "0"]));
    let note = owed.tax.as_ref().unwrap().note.as_deref();
    assert_eq!(note, Some("Reverse charge: the recipient is liable for VAT."));
    // Details that are added later do not change the tax.
    let added = scene.service.payments().add_receipt_buyer(Some(&key), "INV-00001").await.unwrap();
    assert_eq!((added.buyer.is_some(), tax(&added)), (true, Some(["10.00", "1.90", "19"])));
}

#[tokio::test]
async fn a_credit_note_has_the_tax_of_its_part() {
    let scene = Scene::new().await;
    let (key, account) = scene.account_without_wallet().await;
    scene.store.set_receipt_terms(terms("0.19"), scene.clock.now()).await.unwrap();
    pay(&scene, &account, "txn_1").await;
    let refund = ProcessorReversalRequest {
        processor: Some("paddle".to_owned()),
        id: Some("adj_1".to_owned()),
        payment_id: Some("txn_1".to_owned()),
        amount: Some("2.38".to_owned()),
        currency: Some("EUR".to_owned()),
        ..ProcessorReversalRequest::default()
    };
    scene.service.payments().reverse_from_processor(&refund).await.unwrap();
    let receipt = newest(&scene, &key).await;
    assert_eq!((receipt.status.as_str(), receipt.number.as_str()), ("partly_reversed", "INV-00001"));
    let note = &receipt.credit_notes[0];
    assert_eq!((note.number.as_str(), note.amount.as_deref()), ("INV-00002", Some("2.38")));
    let tax = note.tax.as_ref().unwrap();
    assert_eq!([&tax.net, &tax.amount, &tax.gross], ["2.00", "0.38", "2.38"]);
    assert_eq!(note.reference.replacen("C-", "R-", 1).rsplit_once('-').unwrap().0, receipt.reference);
    for number in [&note.number, &note.reference] {
        let found = scene.service.payments().receipt(Some(&key), number).await.unwrap();
        assert_eq!(found.number, receipt.number, "{number}");
    }
}

#[tokio::test]
async fn overlapping_credit_notes_add_up_to_the_receipt() {
    let scene = Scene::new().await;
    let (key, account) = scene.account_without_wallet().await;
    scene.store.set_receipt_terms(terms("0.19"), scene.clock.now()).await.unwrap();
    pay(&scene, &account, "txn_1").await;
    let reversal = |id: &str, amount: &str, restored| ProcessorReversalRequest {
        processor: Some("paddle".to_owned()),
        id: Some(id.to_owned()),
        payment_id: Some("txn_1".to_owned()),
        amount: Some(amount.to_owned()),
        currency: Some("EUR".to_owned()),
        restored,
        ..ProcessorReversalRequest::default()
    };
    // The report, then the number, amount and tax of each credit note, and whether it is in force.
    type Note = (&'static str, &'static str, &'static str, bool);
    let table: [(ProcessorReversalRequest, &[Note]); 4] = [
        (reversal("adj_1", "3.33", false), &[("INV-00002", "3.33", "0.53", true)]),
        (
            reversal("dsp_1", "11.90", false),
            &[("INV-00002", "3.33", "0.53", true), ("INV-00003", "8.57", "1.37", true)],
        ),
        (
            reversal("dsp_1", "11.90", true),
            &[("INV-00002", "3.33", "0.53", true), ("INV-00003", "8.57", "1.37", false)],
        ),
        // A refund of more than is left.
        (
            reversal("adj_2", "10.00", false),
            &[
                ("INV-00002", "3.33", "0.53", true),
                ("INV-00003", "8.57", "1.37", false),
                ("INV-00004", "8.57", "1.37", true),
            ],
        ),
    ];
    for (request, expected) in table {
        scene.clock.pass(Duration::from_secs(1));
        scene.service.payments().reverse_from_processor(&request).await.unwrap();
        let receipt = newest(&scene, &key).await;
        let found: Vec<_> = receipt
            .credit_notes
            .iter()
            .map(|note| {
                let tax = &note.tax.as_ref().unwrap().amount;
                (note.number.as_str(), note.amount.as_deref().unwrap(), tax.as_str(), note.cancelled_at.is_none())
            })
            .collect();
        assert_eq!(found, expected, "{request:?}");
    }
    let receipt = newest(&scene, &key).await;
    assert_eq!(
        (tax(&receipt), receipt.payment.amount_reversed.as_deref()),
        (Some(["10.00", "1.90", "19"]), Some("11.9"))
    );
}
