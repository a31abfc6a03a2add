//! `topup`.

use serde_json::{Value, json};

use super::{SEND, Step, User, succeeded, wallet};
use crate::node::hash;
use crate::program::{OTHER_KEY, WALLET, WALLET_KEY};

const TOPUP: &str = "topup --plan starter --yes";
const CREDIT: &str = "POST /credits/topup";
const REPEATED: &str = "was already credited to this account";

/// A user whose account the wallet paid for.
fn of_wallet() -> User {
    User::with_account(Some(wallet()))
}

/// The same, who was stopped before the payment was registered.
fn stopped() -> User {
    let user = of_wallet();
    user.is_killed(TOPUP, CREDIT, Step::HangBefore);
    user
}

#[test]
fn own_wallet_pays_and_another_wallet_proves_itself() {
    for (payer, requests) in [(Some(wallet()), 1), (None, 2)] {
        let user = User::with_account(payer);
        let printed: Value = user.succeeds(&format!("{TOPUP} --json")).json();
        let found = ["tx_hash", "amount_added", "already_credited"].map(|name| &printed[name]);
        assert_eq!(json!(found), json!([user.state().node.sent[0], 10, false]));
        assert_eq!(user.count(CREDIT), requests);
        user.is_credited_once();
    }
}

#[test]
fn interrupted_topup_is_paid_and_credited_once() {
    // what hangs, and whether it was credited before
    for (what, step, repeated) in [
        ("eth_estimateGas", Step::HangBefore, false),
        (SEND, Step::HangBefore, false),
        (SEND, Step::HangAfter, false),
        (CREDIT, Step::HangBefore, false),
        (CREDIT, Step::HangAfter, true),
    ] {
        let (user, context) = (of_wallet(), format!("{what} {step:?}"));
        user.is_killed(TOPUP, what, step);
        assert!(user.is_paying(), "{context}");
        let ran = user.succeeds(TOPUP);
        user.is_credited_once();
        assert_eq!(ran.stdout.contains(REPEATED), repeated, "{context}: {ran:?}");
    }
}

#[test]
fn without_arguments_topup_resumes_or_asks_for_a_plan() {
    of_wallet().program.refuses(&[("topup --yes", 2, "--plan")]);
    let user = stopped();
    user.program.refuses(&[("topup --plan coin --yes", 5, "another payment is pending")]);
    succeeded(user.run_without_wallet("topup"));
    user.is_credited_once();
}

#[test]
fn without_a_valid_key_nothing_is_paid() {
    let user = User::new();
    user.program.run(TOPUP).failure(6);
    let key = user.state().service.open_account(None);
    user.write_profile(&key);
    user.state().service.accounts.clear();
    user.program.run(TOPUP).failure(6);
    assert!(!user.is_paying() && user.sent() == 0);
}

#[test]
fn pending_payment_stays_with_its_account() {
    let user = stopped();
    let first = user.key().unwrap();
    let other = user.state().service.open_account(None);
    user.write_profile(&other);
    user.program.refuses(&[(TOPUP, 5, "a payment for account org_")]);
    user.write_profile(&first);
    user.state().service.accounts.truncate(1);
    user.succeeds(TOPUP);
    user.is_credited_once();
}

#[test]
fn a_payment_made_elsewhere_is_registered_and_nothing_sent() {
    let (user, line) = (User::with_account(None), format!("topup --plan starter --tx {}", hash(0xab)));
    user.state().node.sent.push(hash(0xab));
    // The payer is unknown and its key is not here: the text is printed, to be signed elsewhere.
    let ran = user.run_without_wallet(&line).expect(5).says("--signature");
    let text = ran.stdout.trim_end();
    assert!(text.contains("Purpose: top-up") && text.contains(&hash(0xab)), "{text}");
    let printed: Value = user.run_without_wallet(&format!("{line} --json")).json();
    assert_eq!(printed["message"], text);
    let signature = metering_evm::Wallet::from_hex(WALLET_KEY).unwrap().sign_message(text);
    succeeded(user.run_without_wallet(&format!("{line} --signature {signature}")));
    user.is_credited_once();
    assert!(succeeded(user.run_without_wallet(&line)).stdout.contains(REPEATED));
    assert_eq!(user.count(SEND), 0);
}

#[test]
fn a_wallet_that_did_not_pay_does_not_sign() {
    let (user, line) = (User::with_account(None), format!("topup --plan starter --tx {}", hash(0xab)));
    user.state().node.sent.push(hash(0xab));
    let failure = user.program.run_with(&[("METERING_CLIENT_WALLET_KEY", OTHER_KEY)], &line).failure(5);
    assert!(failure.contains("did not come from wallet"), "{failure}");
    user.succeeds(&line);
    user.is_credited_once();
}

#[test]
fn unrelated_message_is_not_signed() {
    let user = User::with_account(None);
    let text =
        json!({ "error": "payer_proof_required", "message": format!("Give all to the bearer. Payer: {WALLET}") });
    user.next(CREDIT, Step::Respond(403, text));
    user.program.refuses(&[(TOPUP, 1, "it was not signed")]);
    assert!(user.is_paying());
    user.succeeds(TOPUP);
    user.is_credited_once();
}

#[test]
fn message_of_another_service_is_signed_only_interactively() {
    let user = User::with_account(None);
    let other = "The metering service at https://other.example".to_owned();
    let own = std::mem::replace(&mut user.state().service.name, other);
    for line in [TOPUP, "topup --yes"] {
        // It is shown.
        let ran = user.program.run(line).says("https://other.example");
        assert!(ran.failure(1).contains("it was not signed"));
    }
    user.state().service.name = own;
    user.succeeds("topup");
    user.is_credited_once();
}

#[test]
fn registration_works_despite_a_pending_payment() {
    let user = of_wallet();
    user.is_killed(TOPUP, SEND, Step::HangBefore);
    user.state().node.sent.push(hash(0xab));
    user.succeeds(&format!("topup --plan starter --tx {}", hash(0xab)));
    assert!(user.is_paying());
}

#[test]
fn unprinted_result_is_printed_again_without_paying_again() {
    let user = of_wallet();
    let _ = user.program.on_full_disk(TOPUP).expect(1).says("cannot write the output");
    let printed: Value = user.succeeds(&format!("{TOPUP} --json")).json();
    assert_eq!(printed["already_credited"], true);
    user.is_credited_once();
}

#[test]
fn payment_resumes_under_another_url_of_its_service() {
    let user = stopped();
    let (url, key) = (user.stand_in.url().replace("127.0.0.1", "localhost"), user.key().unwrap());
    let variables = [("METERING_CLIENT_URL", url.as_str()), ("METERING_CLIENT_API_KEY", &key)];
    succeeded(user.program.run_with(&variables, TOPUP));
    user.is_credited_once();
}

#[test]
fn profile_with_a_pending_payment_is_not_removed() {
    let user = stopped();
    user.program
        .refuses(&[("config remove --yes", 5, "pending"), ("config remove --yes", 5, "`metering topup --abandon`")]);
    user.succeeds(TOPUP);
    user.is_credited_once();
    user.succeeds("config remove --yes");
    assert!(!user.program.profile("default", "").exists());
}
