//! The documents, field by field. Clients of `metering admin` and of HTTP read the same ones.

use metering_admin::payments::{ReadableChain, ScanRequest, scan};
use metering_admin::wire::{ArrivalsDocument, AssignmentDocument, PaymentRecordsDocument};
use metering_core::chains::ChainError;
use metering_core::payments::{ArrivalLocation, ReceiptNumber, UnreadableArrival};
use metering_core::store::{Cursor, Page};
use metering_core::{Clock, PaymentStore};

use super::scene::{MAIN, RECIPIENT, STARTER, Scene, USDC, chain};
use super::wallet::Wallet;
use super::{account, assign_main, pay, starter};

/// The time of everything in the scene.
const NOW: &str = "2026-11-21T12:00:00.000Z";

fn json(document: &impl serde::Serialize) -> String {
    serde_json::to_string(document).unwrap()
}

#[tokio::test]
async fn arrivals_have_their_fields_in_order() {
    let scene = Scene::new().await;
    let payer = Wallet::of(1);
    let quote = scene.quote(&payer, "starter", MAIN).await.unwrap();
    let (hash, amount) = (scene.pay(&payer, &quote), &quote.amount_atomic);
    let spoiled = pay(&scene, 2, STARTER);
    scene.main.spoil(spoiled, Some(ChainError::Unreadable("too large".to_owned())));
    let whole_block = ArrivalLocation { chain_id: MAIN, block_number: 7, hash: None };
    scene.store.put_unreadable(UnreadableArrival::new(whole_block, "full", scene.clock.now())).await.unwrap();

    let (plans, listed) = (scene.store.plans().await.unwrap(), chain(MAIN));
    let readable = ReadableChain { name: "main", chain: &listed, reader: &*scene.main };
    let request = ScanRequest { blocks_max: std::num::NonZeroU64::new(19), ..super::everything() };
    let scan = scan(&*scene.store, &plans, readable, request, &mut |_, _| {}).await.unwrap();
    let mut document = ArrivalsDocument::default();
    document.add(readable, &scan, &plans);
    let (payer, human) = (payer.address, &quote.amount_human);
    let expected = format!(
        r#"{{"payments":[{{"chain":"main","chain_id":1,"tx_hash":"{hash}","block_number":1,"mined_at":"{NOW}","payer_address":"{payer}","recipient":"{RECIPIENT}","token_contract":"{USDC}","token_symbol":"USDC","amount_atomic":"{amount}","amount_human":"{human}","status":"quoted","state":null,"org_ids":[],"quote":{{"agent_name":"agent","plan_id":"starter"}},"note":"quote of agent is not claimed yet"}}],"unreadable":[{{"chain":"main","chain_id":1,"tx_hash":null,"block_number":7,"reason":"full","attempts":1,"found_at":"{NOW}","next_attempt_at":"2026-11-21T12:00:30.000Z"}},{{"chain":"main","chain_id":1,"tx_hash":"{spoiled}","block_number":12,"reason":"the chain's RPC response cannot be read: too large","attempts":null,"found_at":null,"next_attempt_at":null}}],"scanned":[{{"chain":"main","chain_id":1,"from_block":0,"to_block":18,"next_block":19}}]}}"#
    );
    assert_eq!(json(&document), expected);
    let read: ArrivalsDocument = serde_json::from_str(&expected).unwrap();
    assert_eq!(json(&read), expected);
    let notes: Vec<_> = read.unreadable.iter().map(|unreadable| unreadable.note()).collect();
    assert_eq!(notes[0], "full; tried 1 times, next at 2026-11-21T12:00:30.000Z");
    assert_eq!(notes[1], "the chain's RPC response cannot be read: too large");
    document.scanned[0].next_block = None;
    assert!(json(&document).ends_with(r#""to_block":18}]}"#));
}

#[tokio::test]
async fn records_and_assignments_have_their_fields_in_order() {
    let scene = Scene::new().await;
    let id = account(&scene).await;
    let hash = pay(&scene, 2, STARTER);
    let first = assign_main(&scene, &starter(hash, &id)).await.unwrap();
    let expected = |added: &str, already: bool| {
        format!(
            r#"{{"org_id":"{id}","credit_balance":10.5,"amount_added":{added},"total_credits_purchased":10.5,"plan_id":"starter","tx_hash":"{hash}","chain_id":1,"already_credited":{already}}}"#
        )
    };
    assert_eq!(json(&AssignmentDocument::from(&first)), expected("10.5", false));
    let again = assign_main(&scene, &starter(hash, &id)).await.unwrap();
    assert_eq!(json(&AssignmentDocument::from(&again)), expected("0", true));
    let detailed = json(&AssignmentDocument::with_details(&again));
    let read: AssignmentDocument = serde_json::from_str(&detailed).unwrap();
    assert_eq!(json(&read), detailed);
    assert_eq!(read.details.unwrap().used_for, Some(format!("assigned to {id}, plan starter")));
    let first = AssignmentDocument::with_details(&first).details.unwrap();
    assert_eq!((first.paid.as_deref(), first.used_for), (Some("5 USDC"), None));

    let plans = scene.store.plans().await.unwrap();
    let page = scene.store.payments(None, 9).await.unwrap();
    let receipt = ReceiptNumber::of(&page.items[0].payment.tx);
    let expected = format!(
        r#"{{"payments":[{{"chain_id":1,"tx_hash":"{hash}","block_number":1,"mined_at":"{NOW}","payer_address":"0x0202020202020202020202020202020202020202","recipient":"{RECIPIENT}","token_contract":"{USDC}","token_symbol":"USDC","amount_atomic":"5000000","amount_human":"5","org_id":"{id}","used_as":"assigned","plan_id":"starter","recorded_at":"{NOW}","state":"unsettled","reversed_at":null,"value":null,"receipt":"{receipt}"}}]}}"#
    );
    assert_eq!(json(&PaymentRecordsDocument::new(&page, &plans)), expected);
    let read: PaymentRecordsDocument = serde_json::from_str(&expected).unwrap();
    assert_eq!((json(&read), read.payments[0].paid().as_str()), (expected, "5 USDC"));
    let unnamed = PaymentRecordsDocument::new(&page, &[]);
    assert_eq!(unnamed.payments[0].paid(), format!("5000000 units of token {USDC}"));
    let page = Page { next: Some(Cursor::new("7")), ..page };
    assert!(json(&PaymentRecordsDocument::new(&page, &plans)).ends_with(r#"}],"next":"7"}"#));
}

#[tokio::test]
async fn a_scan_in_parts_lists_what_one_scan_lists() {
    let scene = Scene::new().await;
    let id = account(&scene).await;
    let _ = assign_main(&scene, &starter(pay(&scene, 2, STARTER), &id)).await.unwrap();
    for from in 3..6 {
        let _ = pay(&scene, from, STARTER);
    }
    let (plans, listed) = (scene.store.plans().await.unwrap(), chain(MAIN));
    let readable = ReadableChain { name: "main", chain: &listed, reader: &*scene.main };
    let document = async |request: ScanRequest| {
        let scan = scan(&*scene.store, &plans, readable, request, &mut |_, _| {}).await.unwrap();
        let mut document = ArrivalsDocument::default();
        document.add(readable, &scan, &plans);
        document
    };
    let request = ScanRequest { with_used: true, ..super::everything() };
    let whole = document(request).await;
    assert_eq!(whole.payments.len(), 4);
    let part = ScanRequest { blocks_max: std::num::NonZeroU64::new(5), ..request };
    let mut joined = document(part).await;
    let mut parts = 1;
    while let Some(next) = joined.scanned[0].next_block {
        let mut rest = document(ScanRequest { from_block: Some(next), ..part }).await;
        // The end of the range lists reversed payments again.
        rest.payments.push(joined.payments[0].clone());
        joined.continue_with(rest);
        parts += 1;
    }
    assert!(parts > 1);
    assert_eq!(json(&joined), json(&whole));
}
