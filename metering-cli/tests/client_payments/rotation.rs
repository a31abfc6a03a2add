//! `rotate`.

use serde_json::json;

use crate::desk::{Desk, OTHER, OTHER_KEY, Ran, WALLET, WALLET_KEY, wallet};
use crate::stand_in::Turn;

/// A desk with an account of the wallet, but without its key.
fn locked_out() -> Desk {
    let desk = Desk::new();
    desk.stand_in.world().service.open_account(Some(wallet()));
    desk
}

#[track_caller]
fn has_the_key(desk: &Desk) {
    assert_eq!(desk.key(), Some(desk.stand_in.world().service.accounts[0].key.clone()));
}

#[test]
fn the_wallet_gets_a_new_key_that_is_stored_and_not_shown() {
    let desk = locked_out();
    let old = desk.stand_in.world().service.accounts[0].key.clone();
    let ran = desk.run(&["rotate", "--json"]).success();
    assert_eq!(ran.json()["status"], "rotated");
    assert_ne!(desk.key(), Some(old));
    has_the_key(&desk);
    desk.run(&["rotate", "--address", WALLET]).success();
    has_the_key(&desk);
}

#[test]
fn a_wallet_elsewhere_signs_the_text_that_is_printed() {
    let desk = locked_out();
    let challenge = ["rotate", "--address", WALLET, "--challenge-only"];
    let ran = desk.run_without_wallet(&challenge).success();
    assert!(ran.stdout.contains("asks you to replace the API key") && ran.stderr.contains("--nonce nonce0"), "{ran:?}");
    assert!(desk.key().is_none());
    let json = desk.run_without_wallet(&[&challenge[..], &["--json"]].concat()).success().json();
    let sign = |key: &str| metering_evm::Wallet::from_hex(key).unwrap().sign_message(json["message"].as_str().unwrap());
    let verify = |signature: &str| {
        let nonce = json["nonce"].as_str().unwrap();
        desk.run_without_wallet(&["rotate", "--address", WALLET, "--nonce", nonce, "--signature", signature])
    };
    assert!(verify(&sign(OTHER_KEY)).failure(2).contains("invalid_signature"));
    verify(&sign(WALLET_KEY)).success();
    has_the_key(&desk);
}

#[test]
fn the_key_of_another_account_is_not_replaced_unless_told_to() {
    let desk = locked_out();
    let other = desk.stand_in.world().service.open_account(None);
    desk.write_profile(&other);
    let failure = desk.run(&["rotate"]).failure(5);
    assert!(failure.contains("--replace-key") && failure.contains("--profile"), "{failure}");
    assert_eq!(desk.key(), Some(other));
    assert_eq!(desk.stand_in.count("POST /api-key/recover/challenge"), 0);
    desk.run(&["rotate", "--replace-key"]).success();
    has_the_key(&desk);
    // A key that no longer works is not in the way.
    desk.stand_in.world().service.accounts.truncate(1);
    desk.write_profile(metering_core::ApiKey::generate(&metering_core::SystemRandomness).expose());
    desk.run(&["rotate"]).success();
    has_the_key(&desk);
}

#[test]
fn a_wallet_without_an_account_and_a_wrong_address_are_told() {
    let desk = locked_out();
    let with_other =
        |args: &[&str]| Ran::of(desk.command(args).env("METERING_CLIENT_WALLET_KEY", OTHER_KEY).output().unwrap());
    assert!(with_other(&["rotate"]).failure(4).contains("no_linked_wallet"));
    assert!(with_other(&["rotate", "--address", WALLET]).failure(2).contains(OTHER));
    desk.run_without_wallet(&["rotate"]).failure(2);
    assert_eq!(desk.run_without_wallet(&["rotate", "--challenge-only"]).code, 2);
    assert_eq!(desk.run_without_wallet(&["rotate", "--address", WALLET, "--nonce", "n"]).code, 2);
}

#[test]
fn an_answer_that_was_lost_is_asked_for_again() {
    let desk = locked_out();
    desk.stand_in.next("POST /api-key/recover/verify", Turn::HangAfter);
    desk.run_and_kill(&["rotate"]);
    assert!(desk.key().is_none());
    desk.run(&["rotate"]).success();
    has_the_key(&desk);
}

#[test]
fn the_text_of_another_service_is_signed_for_nobody_but_a_person() {
    let desk = locked_out();
    let other = "The metering service at https://other.example".to_owned();
    let own = std::mem::replace(&mut desk.stand_in.world().service.name, other);
    for args in [&["rotate"][..], &["rotate", "--yes"]] {
        let ran = desk.run(args);
        assert!(ran.stderr.contains("https://other.example"), "it is shown: {ran:?}");
        assert!(ran.failure(1).contains("it was not signed"));
    }
    assert_eq!(desk.stand_in.count("POST /api-key/recover/verify"), 0);
    desk.stand_in.world().service.name = own;
    desk.run(&["rotate"]).success();
    has_the_key(&desk);
}

#[test]
fn a_text_about_another_wallet_is_not_signed() {
    let desk = locked_out();
    let challenge =
        json!({ "nonce": "n", "message": format!("Nonce: n, for {OTHER}"), "expires_at": "", "expires_in": 1 });
    desk.stand_in.next("POST /api-key/recover/challenge", Turn::Answer(201, challenge));
    let failure = desk.run(&["rotate", "--yes"]).failure(1);
    assert!(failure.contains("it was not signed"), "{failure}");
}

#[test]
fn a_key_that_cannot_be_stored_is_printed_rather_than_lost() {
    let desk = locked_out();
    // A file cannot replace a directory.
    desk.stand_in.next("POST /api-key/recover/verify", Turn::Folder(desk.profile("profile.toml")));
    let output = desk.command(&["rotate"]).output().unwrap();
    let key = desk.stand_in.world().service.accounts[0].key.clone();
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
fn a_keystore_file_is_a_wallet_once_its_password_is_known() {
    let desk = Desk::new();
    desk.stand_in.world().service.open_account(Some(KEYSTORE_ADDRESS.parse().unwrap()));
    let file = desk.profile("wallet.json");
    std::fs::create_dir_all(desk.profile("")).unwrap();
    std::fs::write(&file, KEYSTORE).unwrap();
    let rotate = |password: Option<&str>| {
        let mut command = desk.command_without_wallet(&["rotate", "--keystore", file.to_str().unwrap()]);
        Ran::of(command.envs(password.map(|text| ("METERING_CLIENT_KEYSTORE_PASSWORD", text))).output().unwrap())
    };
    assert!(rotate(None).failure(2).contains("METERING_CLIENT_KEYSTORE_PASSWORD"));
    let failure = rotate(Some("wrong-password")).failure(1);
    assert!(failure.contains("cannot open") && !failure.contains("wrong-password"), "{failure}");
    rotate(Some("testpassword")).success();
    has_the_key(&desk);
    let missing = desk.run_without_wallet(&["rotate", "--keystore", "nowhere.json"]).failure(1);
    assert!(missing.contains("nowhere.json"), "{missing}");
}
