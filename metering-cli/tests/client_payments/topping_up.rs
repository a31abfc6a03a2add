//! `topup`.

use serde_json::json;

use crate::desk::{Desk, OTHER_KEY, Ran, WALLET, wallet};
use crate::service::refusal;
use crate::stand_in::Turn;

const TOPUP: [&str; 4] = ["topup", "--plan", "starter", "--yes"];

/// A desk whose account the wallet paid for.
fn of_wallet() -> Desk {
    let desk = Desk::new();
    let key = desk.stand_in.world().service.open_account(Some(wallet()));
    desk.write_profile(&key);
    desk
}

/// Asserts that one payment was made and credited, and that nothing is pending.
#[track_caller]
fn is_credited_once(desk: &Desk) {
    let world = desk.stand_in.world();
    assert_eq!((world.node.sent.len(), world.service.used.len(), world.service.accounts[0].credits), (1, 1, 12));
    assert!(!desk.journal().exists());
}

#[test]
fn the_own_wallet_pays_and_another_is_proven() {
    for desk in [of_wallet(), Desk::with_account()] {
        let proven = desk.stand_in.world().service.accounts[0].payer.is_none();
        let ran = desk.run(&[&TOPUP[..], &["--json"]].concat()).success();
        let hash = desk.stand_in.world().node.sent[0].clone();
        assert_eq!(ran.json()["tx_hash"], hash.as_str());
        assert_eq!((&ran.json()["amount_added"], &ran.json()["already_credited"]), (&json!(10), &json!(false)));
        assert_eq!(desk.stand_in.count("POST /credits/topup"), if proven { 2 } else { 1 });
        is_credited_once(&desk);
    }
}

#[test]
fn interrupted_anywhere_it_is_paid_and_credited_once() {
    let table = [
        ("eth_estimateGas", Turn::HangBefore),
        ("eth_sendRawTransaction", Turn::HangBefore),
        ("eth_sendRawTransaction", Turn::HangAfter),
        ("POST /credits/topup", Turn::HangBefore),
        ("POST /credits/topup", Turn::HangAfter),
    ];
    for (what, turn) in table {
        let desk = of_wallet();
        let said = format!("{what} {turn:?}");
        desk.stand_in.next(what, turn);
        desk.run_and_kill(&TOPUP);
        assert!(desk.journal().exists(), "{said}");
        let ran = desk.run(&TOPUP).success();
        is_credited_once(&desk);
        let before = said.contains("topup HangAfter");
        assert_eq!(ran.stdout.contains("was already credited to this account"), before, "{said}: {ran:?}");
    }
}

#[test]
fn without_arguments_it_goes_on_and_without_anything_pending_it_says_what_is_missing() {
    let desk = of_wallet();
    assert!(desk.run(&["topup", "--yes"]).failure(2).contains("--plan"));
    desk.stand_in.next("POST /credits/topup", Turn::HangBefore);
    desk.run_and_kill(&TOPUP);
    let failure = desk.run(&["topup", "--plan", "coin", "--yes"]).failure(5);
    assert!(failure.contains("another payment is pending"), "{failure}");
    desk.run_without_wallet(&["topup"]).success();
    is_credited_once(&desk);
}

#[test]
fn without_a_key_that_works_nothing_is_paid() {
    let desk = Desk::new();
    desk.run(&TOPUP).failure(6);
    let key = desk.stand_in.world().service.open_account(None);
    desk.write_profile(&key);
    desk.stand_in.world().service.accounts.clear();
    desk.run(&TOPUP).failure(6);
    assert!(!desk.journal().exists() && desk.sent() == 0);
}

#[test]
fn a_payment_stays_with_the_account_that_it_was_made_for() {
    let desk = of_wallet();
    desk.stand_in.next("POST /credits/topup", Turn::HangBefore);
    desk.run_and_kill(&TOPUP);
    let first = desk.key().unwrap();
    let other = desk.stand_in.world().service.open_account(None);
    desk.write_profile(&other);
    let failure = desk.run(&TOPUP).failure(5);
    assert!(failure.contains("a payment for account org_"), "{failure}");
    desk.write_profile(&first);
    desk.run(&TOPUP).success();
    is_credited_once(&desk);
}

#[test]
fn a_payment_made_elsewhere_is_registered_and_nothing_sent() {
    let hash = format!("0x{}", "ab".repeat(32));
    let args = ["topup", "--plan", "starter", "--tx", &hash];
    let desk = Desk::with_account();
    desk.stand_in.world().node.sent.push(hash.clone());
    // The payer is unknown and its key is not here: the text is printed, to be signed elsewhere.
    let ran = desk.run_without_wallet(&args);
    let text = ran.stdout.clone();
    let failure = ran.failure(5);
    assert!(failure.contains("--signature"), "{failure}");
    assert!(text.contains("Purpose: top-up") && text.contains(&hash), "{text}");
    let message = desk.run_without_wallet(&[&args[..], &["--json"]].concat()).json()["message"].clone();
    assert_eq!(message.as_str().unwrap(), text.trim_end());
    let signature = metering_evm::Wallet::from_hex(crate::desk::WALLET_KEY).unwrap().sign_message(text.trim_end());
    desk.run_without_wallet(&[&args[..], &["--signature", &signature]].concat()).success();
    is_credited_once(&desk);
    let ran = desk.run_without_wallet(&args).success();
    assert!(ran.stdout.contains("was already credited to this account"), "{ran:?}");
    assert_eq!(desk.stand_in.count("eth_sendRawTransaction"), 0);
}

#[test]
fn a_wallet_that_did_not_pay_does_not_sign() {
    let hash = format!("0x{}", "ab".repeat(32));
    let desk = Desk::with_account();
    desk.stand_in.world().node.sent.push(hash.clone());
    let mut command = desk.command(&["topup", "--plan", "starter", "--tx", &hash]);
    let failure = Ran::of(command.env("METERING_CLIENT_WALLET_KEY", OTHER_KEY).output().unwrap()).failure(5);
    assert!(failure.contains("did not come from wallet"), "{failure}");
    desk.run(&["topup", "--plan", "starter", "--tx", &hash]).success();
    is_credited_once(&desk);
}

#[test]
fn a_text_about_something_else_is_not_signed() {
    let desk = Desk::with_account();
    let text =
        json!({ "error": "payer_proof_required", "message": format!("Give all to the bearer. Payer: {WALLET}") });
    desk.stand_in.next("POST /credits/topup", Turn::Answer(403, text));
    let failure = desk.run(&TOPUP).failure(1);
    assert!(failure.contains("it was not signed"), "{failure}");
    assert!(desk.journal().exists());
    desk.run(&TOPUP).success();
    is_credited_once(&desk);
}

#[test]
fn a_text_of_another_service_is_signed_for_nobody_but_a_person() {
    let desk = Desk::with_account();
    let other = "The metering service at https://other.example".to_owned();
    let own = std::mem::replace(&mut desk.stand_in.world().service.name, other);
    for args in [&TOPUP[..], &["topup", "--yes"]] {
        let ran = desk.run(args);
        assert!(ran.stderr.contains("https://other.example"), "it is shown: {ran:?}");
        assert!(ran.failure(1).contains("it was not signed"));
    }
    desk.stand_in.world().service.name = own;
    desk.run(&["topup"]).success();
    is_credited_once(&desk);
}

#[test]
fn a_payment_that_is_refused_for_good_is_kept_on_record() {
    for (status, code) in [(400, "payment_mismatch"), (409, "payment_reserved"), (400, "unknown_plan")] {
        let desk = of_wallet();
        desk.stand_in.next("POST /credits/topup", Turn::Answer(status, refusal(code)));
        let failure = desk.run(&TOPUP).failure(5);
        assert!(failure.contains("payments-refused.json"), "{failure}");
        assert_eq!(desk.set_aside(), [code]);
        assert!(!desk.journal().exists());
    }
}

#[test]
fn a_registration_goes_past_what_is_pending() {
    let desk = of_wallet();
    desk.stand_in.next("eth_sendRawTransaction", Turn::HangBefore);
    desk.run_and_kill(&TOPUP);
    let hash = format!("0x{}", "ab".repeat(32));
    desk.stand_in.world().node.sent.push(hash.clone());
    desk.run(&["topup", "--plan", "starter", "--tx", &hash]).success();
    assert!(desk.journal().exists());
}

#[test]
fn an_answer_that_nobody_saw_is_told_again_and_not_paid_again() {
    let desk = of_wallet();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ran = Ran::of(desk.command(&TOPUP).stdout(full).output().unwrap());
    assert!(ran.code == 1 && ran.stderr.contains("cannot write the output"), "{ran:?}");
    let ran = desk.run(&[&TOPUP[..], &["--json"]].concat()).success();
    assert_eq!(ran.json()["already_credited"], json!(true));
    is_credited_once(&desk);
}

#[test]
fn a_payment_goes_on_by_another_name_of_its_service() {
    let desk = of_wallet();
    desk.stand_in.next("POST /credits/topup", Turn::HangBefore);
    desk.run_and_kill(&TOPUP);
    let mut command = desk.command(&TOPUP);
    command.env("METERING_CLIENT_URL", desk.stand_in.url().replace("127.0.0.1", "localhost"));
    command.env("METERING_CLIENT_API_KEY", desk.key().unwrap());
    Ran::of(command.output().unwrap()).success();
    is_credited_once(&desk);
}

#[test]
fn a_profile_with_a_payment_under_way_is_not_removed() {
    let desk = of_wallet();
    desk.stand_in.next("POST /credits/topup", Turn::HangBefore);
    desk.run_and_kill(&TOPUP);
    let failure = desk.run(&["config", "remove", "--yes"]).failure(5);
    assert!(failure.contains("pending") && failure.contains("`metering topup --abandon`"), "{failure}");
    desk.run(&TOPUP).success();
    is_credited_once(&desk);
    desk.run(&["config", "remove", "--yes"]).success();
    assert!(!desk.profile("").exists());
}
