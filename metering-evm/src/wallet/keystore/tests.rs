use super::*;
use crate::wallet::key::Wallet;

/// The password and key of both examples in the definition.
const PASSWORD: &str = "testpassword";
const KEY: &str = "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d";
const ADDRESS: &str = "0x008aeeda4d805471df9b2a5b0f38a0c3bcba786b";

const PBKDF2: &str = r#"{
    "crypto": {
        "cipher": "aes-128-ctr",
        "cipherparams": { "iv": "6087dab2f9fdbbfaddc31a909735c1e6" },
        "ciphertext": "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
        "kdf": "pbkdf2",
        "kdfparams": {
            "c": 262144,
            "dklen": 32,
            "prf": "hmac-sha256",
            "salt": "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd"
        },
        "mac": "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2"
    },
    "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6",
    "version": 3
}"#;

const SCRYPT: &str = r#"{
    "crypto": {
        "cipher": "aes-128-ctr",
        "cipherparams": { "iv": "83dbcc02d8ccb40e466191a123791e0e" },
        "ciphertext": "d172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c",
        "kdf": "scrypt",
        "kdfparams": {
            "dklen": 32,
            "n": 262144,
            "p": 8,
            "r": 1,
            "salt": "ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19"
        },
        "mac": "2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097"
    },
    "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6",
    "version": 3
}"#;

/// A file with the same key that opens immediately.
fn quick() -> Value {
    let kdfparams = serde_json::json!({ "c": 1, "dklen": 32, "prf": "hmac-sha256", "salt": "00" });
    let derived = Derivation::parse("pbkdf2", kdfparams.clone()).unwrap().derive(PASSWORD).unwrap();
    let mut text: [u8; 32] = fixed("key", KEY).unwrap();
    Ctr128BE::<Aes128>::new_from_slices(&derived[..16], &[9; 16]).unwrap().apply_keystream(&mut text);
    let mac: [u8; 32] = Keccak256::new().chain_update(&derived[16..]).chain_update(text).finalize().into();
    serde_json::json!({
        "version": 3,
        "address": ADDRESS,
        "crypto": {
            "cipher": "aes-128-ctr", "cipherparams": { "iv": "09".repeat(16) }, "ciphertext": hex::encode(text),
            "kdf": "pbkdf2", "kdfparams": kdfparams, "mac": hex::encode(mac),
        },
    })
}

/// The result of opening the quick file with one part changed.
fn changed(part: &str, to: Value) -> Result<String, WalletError> {
    let mut file = quick();
    *file.pointer_mut(part).unwrap() = to;
    opened(&file)
}

fn opened(file: &Value) -> Result<String, WalletError> {
    Wallet::from_keystore(file.to_string().as_bytes(), PASSWORD).map(|wallet| wallet.address().to_string())
}

#[test]
fn examples_of_the_keystore_specification_open() {
    for file in [PBKDF2, SCRYPT] {
        let (key, address) = decrypt(file.as_bytes(), PASSWORD).unwrap();
        assert_eq!((hex::encode(*key), address), (KEY.to_owned(), None));
        assert_eq!(Wallet::from_keystore(file.as_bytes(), PASSWORD).unwrap().address().to_string(), ADDRESS);
    }
}

#[test]
fn keystores_of_common_wallets_open() {
    assert_eq!(opened(&quick()), Ok(ADDRESS.to_owned()));
    for address in [Value::Null, "".into(), ADDRESS[2..].into(), ADDRESS.to_uppercase().replace("0X", "0x").into()] {
        assert_eq!(changed("/address", address), Ok(ADDRESS.to_owned()));
    }
    let mut old = quick();
    let crypto = old.as_object_mut().unwrap().remove("crypto").unwrap();
    old["Crypto"] = crypto;
    assert_eq!(opened(&old), Ok(ADDRESS.to_owned()));
}

#[test]
fn wrong_password_is_distinguished_from_a_damaged_file() {
    for password in ["", "Testpassword", "testpassword "] {
        let error = Wallet::from_keystore(quick().to_string().as_bytes(), password).unwrap_err();
        assert_eq!(error, WalletError::WrongPassword, "{password:?}");
        assert!(password.is_empty() || !error.to_string().contains(password));
    }
    let hex31 = "00".repeat(31);
    // part, new value, fragment of the error
    let table = [
        ("/crypto/cipherparams/iv", "".into(), "iv"),
        ("/crypto/cipherparams/iv", 7.into(), "missing"),
        ("/crypto/ciphertext", hex31.clone().into(), "ciphertext"),
        ("/crypto/mac", hex31.into(), "mac"),
        ("/crypto/mac", "zz".repeat(32).into(), "mac"),
        ("/crypto/kdfparams", Value::Null, "kdfparams"),
        ("/crypto/kdfparams/c", (-1).into(), "kdfparams"),
        ("/crypto/kdfparams/c", 0.into(), "PBKDF2"),
        ("/crypto/kdfparams/salt", "0".into(), "salt"),
        ("/crypto", Value::Null, "missing"),
        ("/address", "0x12".into(), "address"),
        ("/version", Value::Null, "missing"),
    ];
    for (part, to, problem) in table {
        let error = changed(part, to).unwrap_err();
        assert!(matches!(&error, WalletError::Damaged(what) if what.contains(problem)), "{part}: {error}");
    }
    for json in ["", "{", "[]", "null", &"7a28".repeat(20_000)] {
        let error = decrypt(json.as_bytes(), PASSWORD).unwrap_err();
        assert!(matches!(error, WalletError::Damaged(_)) && !error.to_string().contains("7a28"), "{error}");
    }
    assert_eq!(changed("/address", format!("0x{}", "11".repeat(20)).into()), Err(WalletError::OtherAddress));
}

#[test]
fn unsupported_keystore_features_are_named() {
    // part, new value, fragment of the error
    let table = [
        ("/version", 4.into(), "version 4"),
        ("/crypto/cipher", "aes-256-gcm".into(), "cipher"),
        ("/crypto/kdf", "argon2id".into(), "kdf"),
        ("/crypto/kdfparams/prf", "hmac-sha512".into(), "prf"),
        ("/crypto/kdfparams/dklen", 16.into(), "dklen is 16"),
    ];
    for (part, to, problem) in table {
        let error = changed(part, to).unwrap_err();
        assert!(matches!(&error, WalletError::Unsupported(what) if what.contains(problem)), "{part}: {error}");
    }
}

#[test]
fn keystore_with_excessive_parameters_is_refused() {
    let scrypt = |n: u64, r: u32, p: u32| {
        Derivation::parse("scrypt", serde_json::json!({ "n": n, "r": r, "p": p, "dklen": 32, "salt": "00" }))
    };
    let pbkdf2 = |c: u32| {
        let params = serde_json::json!({ "c": c, "dklen": 32, "prf": "hmac-sha256", "salt": "00" });
        Derivation::parse("pbkdf2", params)
    };
    let costly = [
        scrypt(1 << 20, 8, 1),
        scrypt(1 << 63, u32::MAX, u32::MAX),
        scrypt(2, u32::MAX, 1),
        scrypt(2, 8, u32::MAX),
        scrypt(1 << 18, 8, 8),
        pbkdf2(u32::MAX),
    ];
    for result in costly {
        assert!(matches!(result, Err(WalletError::TooCostly(_))), "{result:?}");
    }
    for result in [scrypt(0, 8, 1), scrypt(1, 8, 1), scrypt(3, 8, 1), scrypt(2, 0, 1), scrypt(2, 1, 0)] {
        assert!(matches!(result, Err(WalletError::Damaged(_))), "{result:?}");
    }
    // The parameters of geth, of its light mode, of the definition and of ethers.js.
    for result in [scrypt(1 << 18, 8, 1), scrypt(1 << 12, 8, 6), scrypt(1 << 18, 1, 8), scrypt(1 << 17, 8, 1)] {
        assert!(result.is_ok(), "{result:?}");
    }
}
