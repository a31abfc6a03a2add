//! `rotate`.

use serde_json::{Value, json};

use super::{Step, User, succeeded, wallet};
use crate::program::{OTHER, OTHER_KEY, WALLET, WALLET_KEY};

const VERIFY: &str = "POST /api-key/recover/verify";

/// A user with an account of the wallet, but without its key.
fn locked_out() -> User {
    let user = User::new();
    user.state().service.open_account(Some(wallet()));
    user
}

#[test]
fn wallet_gets_a_new_key_that_is_stored_and_not_printed() {
    let user = locked_out();
    let old = user.state().service.accounts[0].key.clone();
    let printed: Value = user.succeeds("rotate --json").json();
    assert_eq!(printed["status"], "rotated");
    assert_ne!(user.key(), Some(old));
    user.has_the_key();
    user.succeeds(&format!("rotate --address {WALLET}"));
    user.has_the_key();
}

#[test]
fn external_wallet_signs_the_printed_message() {
    let user = locked_out();
    let challenge = format!("rotate --address {WALLET} --challenge-only");
    let ran = succeeded(user.run_without_wallet(&challenge)).says("--nonce nonce0");
    assert!(ran.stdout.contains("asks you to replace the API key") && user.key().is_none(), "{ran:?}");
    let printed: Value = succeeded(user.run_without_wallet(&format!("{challenge} --json"))).json();
    let (message, nonce) = (printed["message"].as_str().unwrap(), printed["nonce"].as_str().unwrap());
    let verify = |key: &str| {
        let signature = metering_evm::Wallet::from_hex(key).unwrap().sign_message(message);
        user.run_without_wallet(&format!("rotate --address {WALLET} --nonce {nonce} --signature {signature}"))
    };
    assert!(verify(OTHER_KEY).failure(2).contains("invalid_signature"));
    succeeded(verify(WALLET_KEY));
    user.has_the_key();
}

#[test]
fn key_of_another_account_is_replaced_only_on_request() {
    let user = locked_out();
    let other = user.state().service.open_account(None);
    user.write_profile(&other);
    user.program.refuses(&[("rotate", 5, "--replace-key"), ("rotate", 5, "--profile")]);
    assert_eq!(user.key(), Some(other));
    assert_eq!(user.count("POST /api-key/recover/challenge"), 0);
    user.succeeds("rotate --replace-key");
    user.has_the_key();
    // A key that no longer works is not in the way.
    user.state().service.accounts.truncate(1);
    user.write_profile(metering_core::ApiKey::generate(&metering_core::SystemRandomness).expose());
    user.succeeds("rotate");
    user.has_the_key();
}

#[test]
fn wallet_without_account_and_wrong_address_are_reported() {
    let user = locked_out();
    let with_other = |line: &str| user.program.run_with(&[("METERING_CLIENT_WALLET_KEY", OTHER_KEY)], line);
    assert!(with_other("rotate").failure(4).contains("no_linked_wallet"));
    assert!(with_other(&format!("rotate --address {WALLET}")).failure(2).contains(OTHER));
    let unsigned = format!("rotate --address {WALLET} --nonce n");
    for line in ["rotate", "rotate --challenge-only", &unsigned] {
        let _ = user.run_without_wallet(line).expect(2);
    }
}

#[test]
fn lost_response_is_requested_again() {
    let user = locked_out();
    user.is_killed("rotate", VERIFY, Step::HangAfter);
    assert!(user.key().is_none());
    user.succeeds("rotate");
    user.has_the_key();
    let user = locked_out();
    user.prints_the_key("rotate", VERIFY);
}

#[test]
fn message_of_another_service_or_wallet_is_not_signed() {
    let user = locked_out();
    let other = "The metering service at https://other.example".to_owned();
    let own = std::mem::replace(&mut user.state().service.name, other);
    for line in ["rotate", "rotate --yes"] {
        // It is shown.
        let ran = user.program.run(line).says("https://other.example");
        assert!(ran.failure(1).contains("it was not signed"));
    }
    user.state().service.name = own;
    let message = format!("Nonce: n, for {OTHER}");
    let challenge = json!({ "nonce": "n", "message": message, "expires_at": "", "expires_in": 1 });
    user.next("POST /api-key/recover/challenge", Step::Respond(201, challenge));
    user.program.refuses(&[("rotate --yes", 1, "it was not signed")]);
    assert_eq!(user.count(VERIFY), 0);
    user.succeeds("rotate");
    user.has_the_key();
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
    let user = User::new();
    user.state().service.open_account(Some(KEYSTORE_ADDRESS.parse().unwrap()));
    user.program.write("wallet.json", KEYSTORE);
    let rotate = |password: Option<&str>, file: &str| {
        let mut command = user.program.command(&format!("rotate --keystore {file}"));
        command.env_remove("METERING_CLIENT_WALLET_KEY");
        command.envs(password.map(|text| ("METERING_CLIENT_KEYSTORE_PASSWORD", text)));
        crate::program::RunOutput::of(&mut command)
    };
    assert!(rotate(None, "wallet.json").failure(2).contains("METERING_CLIENT_KEYSTORE_PASSWORD"));
    let failure = rotate(Some("wrong-password"), "wallet.json").failure(1);
    assert!(failure.contains("cannot open") && !failure.contains("wrong-password"), "{failure}");
    succeeded(rotate(Some("testpassword"), "wallet.json"));
    user.has_the_key();
    assert!(rotate(None, "nowhere.json").failure(1).contains("nowhere.json"));
}
