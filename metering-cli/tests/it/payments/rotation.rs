//! `rotate`.

use serde_json::json;

use crate::fixture::{Fixture, OTHER, OTHER_KEY, RunOutput, WALLET, WALLET_KEY, wallet};
use crate::stand_in::Step;

/// A fixture with an account of the wallet, but without its key.
fn locked_out() -> Fixture {
    let fixture = Fixture::new();
    fixture.stand_in.state().service.open_account(Some(wallet()));
    fixture
}

#[track_caller]
fn has_the_key(fixture: &Fixture) {
    assert_eq!(fixture.key(), Some(fixture.stand_in.state().service.accounts[0].key.clone()));
}

#[test]
fn wallet_gets_a_new_key_that_is_stored_and_not_printed() {
    let fixture = locked_out();
    let old = fixture.stand_in.state().service.accounts[0].key.clone();
    let ran = fixture.run(&["rotate", "--json"]).success();
    assert_eq!(ran.json()["status"], "rotated");
    assert_ne!(fixture.key(), Some(old));
    has_the_key(&fixture);
    fixture.run(&["rotate", "--address", WALLET]).success();
    has_the_key(&fixture);
}

#[test]
fn external_wallet_signs_the_printed_message() {
    let fixture = locked_out();
    let challenge = ["rotate", "--address", WALLET, "--challenge-only"];
    let ran = fixture.run_without_wallet(&challenge).success();
    assert!(ran.stdout.contains("asks you to replace the API key") && ran.stderr.contains("--nonce nonce0"), "{ran:?}");
    assert!(fixture.key().is_none());
    let json = fixture.run_without_wallet(&[&challenge[..], &["--json"]].concat()).success().json();
    let sign = |key: &str| metering_evm::Wallet::from_hex(key).unwrap().sign_message(json["message"].as_str().unwrap());
    let verify = |signature: &str| {
        let nonce = json["nonce"].as_str().unwrap();
        fixture.run_without_wallet(&["rotate", "--address", WALLET, "--nonce", nonce, "--signature", signature])
    };
    assert!(verify(&sign(OTHER_KEY)).failure(2).contains("invalid_signature"));
    verify(&sign(WALLET_KEY)).success();
    has_the_key(&fixture);
}

#[test]
fn key_of_another_account_is_replaced_only_on_request() {
    let fixture = locked_out();
    let other = fixture.stand_in.state().service.open_account(None);
    fixture.write_profile(&other);
    let failure = fixture.run(&["rotate"]).failure(5);
    assert!(failure.contains("--replace-key") && failure.contains("--profile"), "{failure}");
    assert_eq!(fixture.key(), Some(other));
    assert_eq!(fixture.stand_in.count("POST /api-key/recover/challenge"), 0);
    fixture.run(&["rotate", "--replace-key"]).success();
    has_the_key(&fixture);
    // A key that no longer works is not in the way.
    fixture.stand_in.state().service.accounts.truncate(1);
    fixture.write_profile(metering_core::ApiKey::generate(&metering_core::SystemRandomness).expose());
    fixture.run(&["rotate"]).success();
    has_the_key(&fixture);
}

#[test]
fn wallet_without_account_and_wrong_address_are_reported() {
    let fixture = locked_out();
    let with_other = |args: &[&str]| {
        RunOutput::of(fixture.command(args).env("METERING_CLIENT_WALLET_KEY", OTHER_KEY).output().unwrap())
    };
    assert!(with_other(&["rotate"]).failure(4).contains("no_linked_wallet"));
    assert!(with_other(&["rotate", "--address", WALLET]).failure(2).contains(OTHER));
    fixture.run_without_wallet(&["rotate"]).failure(2);
    assert_eq!(fixture.run_without_wallet(&["rotate", "--challenge-only"]).code, 2);
    assert_eq!(fixture.run_without_wallet(&["rotate", "--address", WALLET, "--nonce", "n"]).code, 2);
}

#[test]
fn lost_response_is_requested_again() {
    let fixture = locked_out();
    fixture.stand_in.next("POST /api-key/recover/verify", Step::HangAfter);
    fixture.run_and_kill(&["rotate"]);
    assert!(fixture.key().is_none());
    fixture.run(&["rotate"]).success();
    has_the_key(&fixture);
}

#[test]
fn message_of_another_service_is_signed_only_interactively() {
    let fixture = locked_out();
    let other = "The metering service at https://other.example".to_owned();
    let own = std::mem::replace(&mut fixture.stand_in.state().service.name, other);
    for args in [&["rotate"][..], &["rotate", "--yes"]] {
        let ran = fixture.run(args);
        assert!(ran.stderr.contains("https://other.example"), "it is shown: {ran:?}");
        assert!(ran.failure(1).contains("it was not signed"));
    }
    assert_eq!(fixture.stand_in.count("POST /api-key/recover/verify"), 0);
    fixture.stand_in.state().service.name = own;
    fixture.run(&["rotate"]).success();
    has_the_key(&fixture);
}

#[test]
fn message_about_another_wallet_is_not_signed() {
    let fixture = locked_out();
    let challenge =
        json!({ "nonce": "n", "message": format!("Nonce: n, for {OTHER}"), "expires_at": "", "expires_in": 1 });
    fixture.stand_in.next("POST /api-key/recover/challenge", Step::Respond(201, challenge));
    let failure = fixture.run(&["rotate", "--yes"]).failure(1);
    assert!(failure.contains("it was not signed"), "{failure}");
}

#[test]
fn key_that_cannot_be_stored_is_printed() {
    let fixture = locked_out();
    // A file cannot replace a directory.
    fixture.stand_in.next("POST /api-key/recover/verify", Step::Folder(fixture.profile("profile.toml")));
    let output = fixture.command(&["rotate"]).output().unwrap();
    let key = fixture.stand_in.state().service.accounts[0].key.clone();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{key}\n"));
    assert_eq!(output.status.code(), Some(1));
}

/// The test vector of Web3 Secret Storage, with PBKDF2.
const KEYSTORE: &str = r#"{
    "crypto": {
        "cipher": "aes-128-ctr", "cipherparams": { "iv": "6087dab2f9fdbbfaddc31a909735c1e6" },
        "ciphertext": "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
        "kdf": "pbkdf2", "kdfparams": { "c": 262144, "dklen": 32, "prf": "hmac-sha256",
            "salt": "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd" },
        "mac": "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2"
    },
    "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6", "version": 3
}"#;
const KEYSTORE_ADDRESS: &str = "0x008aeeda4d805471df9b2a5b0f38a0c3bcba786b";

#[test]
fn keystore_file_opens_with_its_password() {
    let fixture = Fixture::new();
    fixture.stand_in.state().service.open_account(Some(KEYSTORE_ADDRESS.parse().unwrap()));
    let file = fixture.profile("wallet.json");
    std::fs::create_dir_all(fixture.profile("")).unwrap();
    std::fs::write(&file, KEYSTORE).unwrap();
    let rotate = |password: Option<&str>| {
        let mut command = fixture.command_without_wallet(&["rotate", "--keystore", file.to_str().unwrap()]);
        RunOutput::of(command.envs(password.map(|text| ("METERING_CLIENT_KEYSTORE_PASSWORD", text))).output().unwrap())
    };
    assert!(rotate(None).failure(2).contains("METERING_CLIENT_KEYSTORE_PASSWORD"));
    let failure = rotate(Some("wrong-password")).failure(1);
    assert!(failure.contains("cannot open") && !failure.contains("wrong-password"), "{failure}");
    rotate(Some("testpassword")).success();
    has_the_key(&fixture);
    let missing = fixture.run_without_wallet(&["rotate", "--keystore", "nowhere.json"]).failure(1);
    assert!(missing.contains("nowhere.json"), "{missing}");
}
