//! `topup`.

use serde_json::json;

use crate::fixture::{Fixture, OTHER_KEY, RunOutput, WALLET, wallet};
use crate::service::refusal;
use crate::stand_in::Step;

const TOPUP: [&str; 4] = ["topup", "--plan", "starter", "--yes"];

/// A fixture whose account the wallet paid for.
fn of_wallet() -> Fixture {
    let fixture = Fixture::new();
    let key = fixture.stand_in.state().service.open_account(Some(wallet()));
    fixture.write_profile(&key);
    fixture
}

/// Asserts that one payment was made and credited, and that nothing is pending.
#[track_caller]
fn is_credited_once(fixture: &Fixture) {
    let state = fixture.stand_in.state();
    assert_eq!((state.node.sent.len(), state.service.used.len(), state.service.accounts[0].credits), (1, 1, 12));
    assert!(!fixture.journal().exists());
}

#[test]
fn own_wallet_pays_and_another_wallet_proves_itself() {
    for fixture in [of_wallet(), Fixture::with_account()] {
        let proven = fixture.stand_in.state().service.accounts[0].payer.is_none();
        let ran = fixture.run(&[&TOPUP[..], &["--json"]].concat()).success();
        let hash = fixture.stand_in.state().node.sent[0].clone();
        assert_eq!(ran.json()["tx_hash"], hash.as_str());
        assert_eq!((&ran.json()["amount_added"], &ran.json()["already_credited"]), (&json!(10), &json!(false)));
        assert_eq!(fixture.stand_in.count("POST /credits/topup"), if proven { 2 } else { 1 });
        is_credited_once(&fixture);
    }
}

#[test]
fn interrupted_topup_is_paid_and_credited_once() {
    let table = [
        ("eth_estimateGas", Step::HangBefore),
        ("eth_sendRawTransaction", Step::HangBefore),
        ("eth_sendRawTransaction", Step::HangAfter),
        ("POST /credits/topup", Step::HangBefore),
        ("POST /credits/topup", Step::HangAfter),
    ];
    for (what, step) in table {
        let fixture = of_wallet();
        let context = format!("{what} {step:?}");
        fixture.stand_in.next(what, step);
        fixture.run_and_kill(&TOPUP);
        assert!(fixture.journal().exists(), "{context}");
        let ran = fixture.run(&TOPUP).success();
        is_credited_once(&fixture);
        let before = context.contains("topup HangAfter");
        assert_eq!(ran.stdout.contains("was already credited to this account"), before, "{context}: {ran:?}");
    }
}

#[test]
fn without_arguments_topup_resumes_or_asks_for_a_plan() {
    let fixture = of_wallet();
    assert!(fixture.run(&["topup", "--yes"]).failure(2).contains("--plan"));
    fixture.stand_in.next("POST /credits/topup", Step::HangBefore);
    fixture.run_and_kill(&TOPUP);
    let failure = fixture.run(&["topup", "--plan", "coin", "--yes"]).failure(5);
    assert!(failure.contains("another payment is pending"), "{failure}");
    fixture.run_without_wallet(&["topup"]).success();
    is_credited_once(&fixture);
}

#[test]
fn without_a_valid_key_nothing_is_paid() {
    let fixture = Fixture::new();
    fixture.run(&TOPUP).failure(6);
    let key = fixture.stand_in.state().service.open_account(None);
    fixture.write_profile(&key);
    fixture.stand_in.state().service.accounts.clear();
    fixture.run(&TOPUP).failure(6);
    assert!(!fixture.journal().exists() && fixture.sent() == 0);
}

#[test]
fn pending_payment_stays_with_its_account() {
    let fixture = of_wallet();
    fixture.stand_in.next("POST /credits/topup", Step::HangBefore);
    fixture.run_and_kill(&TOPUP);
    let first = fixture.key().unwrap();
    let other = fixture.stand_in.state().service.open_account(None);
    fixture.write_profile(&other);
    let failure = fixture.run(&TOPUP).failure(5);
    assert!(failure.contains("a payment for account org_"), "{failure}");
    fixture.write_profile(&first);
    fixture.run(&TOPUP).success();
    is_credited_once(&fixture);
}

#[test]
fn a_payment_made_elsewhere_is_registered_and_nothing_sent() {
    let hash = format!("0x{}", "ab".repeat(32));
    let args = ["topup", "--plan", "starter", "--tx", &hash];
    let fixture = Fixture::with_account();
    fixture.stand_in.state().node.sent.push(hash.clone());
    // The payer is unknown and its key is not here: the text is printed, to be signed elsewhere.
    let ran = fixture.run_without_wallet(&args);
    let text = ran.stdout.clone();
    let failure = ran.failure(5);
    assert!(failure.contains("--signature"), "{failure}");
    assert!(text.contains("Purpose: top-up") && text.contains(&hash), "{text}");
    let message = fixture.run_without_wallet(&[&args[..], &["--json"]].concat()).json()["message"].clone();
    assert_eq!(message.as_str().unwrap(), text.trim_end());
    let signature = metering_evm::Wallet::from_hex(crate::fixture::WALLET_KEY).unwrap().sign_message(text.trim_end());
    fixture.run_without_wallet(&[&args[..], &["--signature", &signature]].concat()).success();
    is_credited_once(&fixture);
    let ran = fixture.run_without_wallet(&args).success();
    assert!(ran.stdout.contains("was already credited to this account"), "{ran:?}");
    assert_eq!(fixture.stand_in.count("eth_sendRawTransaction"), 0);
}

#[test]
fn a_wallet_that_did_not_pay_does_not_sign() {
    let hash = format!("0x{}", "ab".repeat(32));
    let fixture = Fixture::with_account();
    fixture.stand_in.state().node.sent.push(hash.clone());
    let mut command = fixture.command(&["topup", "--plan", "starter", "--tx", &hash]);
    let failure = RunOutput::of(command.env("METERING_CLIENT_WALLET_KEY", OTHER_KEY).output().unwrap()).failure(5);
    assert!(failure.contains("did not come from wallet"), "{failure}");
    fixture.run(&["topup", "--plan", "starter", "--tx", &hash]).success();
    is_credited_once(&fixture);
}

#[test]
fn unrelated_message_is_not_signed() {
    let fixture = Fixture::with_account();
    let text =
        json!({ "error": "payer_proof_required", "message": format!("Give all to the bearer. Payer: {WALLET}") });
    fixture.stand_in.next("POST /credits/topup", Step::Respond(403, text));
    let failure = fixture.run(&TOPUP).failure(1);
    assert!(failure.contains("it was not signed"), "{failure}");
    assert!(fixture.journal().exists());
    fixture.run(&TOPUP).success();
    is_credited_once(&fixture);
}

#[test]
fn message_of_another_service_is_signed_only_interactively() {
    let fixture = Fixture::with_account();
    let other = "The metering service at https://other.example".to_owned();
    let own = std::mem::replace(&mut fixture.stand_in.state().service.name, other);
    for args in [&TOPUP[..], &["topup", "--yes"]] {
        let ran = fixture.run(args);
        assert!(ran.stderr.contains("https://other.example"), "it is shown: {ran:?}");
        assert!(ran.failure(1).contains("it was not signed"));
    }
    fixture.stand_in.state().service.name = own;
    fixture.run(&["topup"]).success();
    is_credited_once(&fixture);
}

#[test]
fn permanently_rejected_payment_is_kept_on_record() {
    for (status, code) in [(400, "payment_mismatch"), (409, "payment_reserved"), (400, "unknown_plan")] {
        let fixture = of_wallet();
        fixture.stand_in.next("POST /credits/topup", Step::Respond(status, refusal(code)));
        let failure = fixture.run(&TOPUP).failure(5);
        assert!(failure.contains("payments-refused.json"), "{failure}");
        assert_eq!(fixture.set_aside(), [code]);
        assert!(!fixture.journal().exists());
    }
}

#[test]
fn registration_works_despite_a_pending_payment() {
    let fixture = of_wallet();
    fixture.stand_in.next("eth_sendRawTransaction", Step::HangBefore);
    fixture.run_and_kill(&TOPUP);
    let hash = format!("0x{}", "ab".repeat(32));
    fixture.stand_in.state().node.sent.push(hash.clone());
    fixture.run(&["topup", "--plan", "starter", "--tx", &hash]).success();
    assert!(fixture.journal().exists());
}

#[test]
fn unprinted_result_is_printed_again_without_paying_again() {
    let fixture = of_wallet();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ran = RunOutput::of(fixture.command(&TOPUP).stdout(full).output().unwrap());
    assert!(ran.code == 1 && ran.stderr.contains("cannot write the output"), "{ran:?}");
    let ran = fixture.run(&[&TOPUP[..], &["--json"]].concat()).success();
    assert_eq!(ran.json()["already_credited"], json!(true));
    is_credited_once(&fixture);
}

#[test]
fn payment_resumes_under_another_url_of_its_service() {
    let fixture = of_wallet();
    fixture.stand_in.next("POST /credits/topup", Step::HangBefore);
    fixture.run_and_kill(&TOPUP);
    let mut command = fixture.command(&TOPUP);
    command.env("METERING_CLIENT_URL", fixture.stand_in.url().replace("127.0.0.1", "localhost"));
    command.env("METERING_CLIENT_API_KEY", fixture.key().unwrap());
    RunOutput::of(command.output().unwrap()).success();
    is_credited_once(&fixture);
}

#[test]
fn profile_with_a_pending_payment_is_not_removed() {
    let fixture = of_wallet();
    fixture.stand_in.next("POST /credits/topup", Step::HangBefore);
    fixture.run_and_kill(&TOPUP);
    let failure = fixture.run(&["config", "remove", "--yes"]).failure(5);
    assert!(failure.contains("pending") && failure.contains("`metering topup --abandon`"), "{failure}");
    fixture.run(&TOPUP).success();
    is_credited_once(&fixture);
    fixture.run(&["config", "remove", "--yes"]).success();
    assert!(!fixture.profile("").exists());
}
