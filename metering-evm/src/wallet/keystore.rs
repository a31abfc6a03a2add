//! Encrypted key files: Web3 Secret Storage, version 3, as geth writes them.
//!
//! The primitives are RustCrypto's; this module handles the format and validates it. A file itself determines how much
//! memory and time it takes to decrypt, so both must be bounded before anything is derived.

mod derivation;

use aes::Aes128;
use aes::cipher::{KeyIvInit, StreamCipher};
use ctr::Ctr128BE;
use metering_core::chains::Address;
use serde::Deserialize;
use serde_json::Value;
use sha3::{Digest, Keccak256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use self::derivation::{Derivation, Secret, damaged, unsupported};
use super::error::WalletError;

/// The largest file that is read. Key files are smaller than one kibibyte.
const FILE_BYTES_MAX: usize = 64 * 1024;

/// The only cipher in the definition.
const CIPHER: &str = "aes-128-ctr";

#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

#[derive(Deserialize)]
struct File {
    /// Early versions of geth capitalized it.
    #[serde(alias = "Crypto")]
    crypto: Crypto,
    /// With or without `0x`. Some wallets leave it out for privacy.
    address: Option<String>,
}

#[derive(Deserialize)]
struct Crypto {
    cipher: String,
    cipherparams: CipherParams,
    ciphertext: String,
    kdf: String,
    kdfparams: Value,
    mac: String,
}

#[derive(Deserialize)]
struct CipherParams {
    iv: String,
}

/// The private key in a key file, and the address that the file names.
pub(crate) fn decrypt(json: &[u8], password: &str) -> Result<(Secret, Option<Address>), WalletError> {
    let File { crypto, address } = parse(json)?;
    if crypto.cipher != CIPHER {
        return Err(unsupported(format_args!("its cipher is not {CIPHER}")));
    }
    let iv: [u8; 16] = fixed("iv", &crypto.cipherparams.iv)?;
    let ciphertext: [u8; 32] = fixed("ciphertext", &crypto.ciphertext)?;
    let mac: [u8; 32] = fixed("mac", &crypto.mac)?;
    let address = address.filter(|text| !text.is_empty()).map(|text| fixed("address", &text)).transpose()?;

    let derived = Derivation::parse(&crypto.kdf, crypto.kdfparams)?.derive(password)?;
    let (cipher_key, mac_key) = derived.split_at(16);
    let found: [u8; 32] = Keccak256::new().chain_update(mac_key).chain_update(ciphertext).finalize().into();
    if !bool::from(found.ct_eq(&mac)) {
        return Err(WalletError::WrongPassword);
    }
    let mut cipher =
        Ctr128BE::<Aes128>::new_from_slices(cipher_key, &iv).expect("AES-128 has keys and blocks of 16 bytes");
    let mut key = Zeroizing::new(ciphertext);
    cipher.apply_keystream(key.as_mut_slice());
    Ok((key, address.map(Address::from_bytes)))
}

fn parse(json: &[u8]) -> Result<File, WalletError> {
    if json.len() > FILE_BYTES_MAX {
        return Err(damaged(format_args!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    // The parser's own message could repeat contents of the file.
    let wrong = |error: &serde_json::Error| match error.classify() {
        serde_json::error::Category::Data => damaged("a part of it is missing or invalid"),
        _ => damaged(format_args!("it is not JSON at line {}, column {}", error.line(), error.column())),
    };
    let Versioned { version } = serde_json::from_slice(json).map_err(|error| wrong(&error))?;
    if version != 3 {
        return Err(unsupported(format_args!("it has version {version}, not 3")));
    }
    serde_json::from_slice(json).map_err(|error| wrong(&error))
}

/// The bytes of a hexadecimal text, which must be exactly `N`.
fn fixed<const N: usize>(name: &str, text: &str) -> Result<[u8; N], WalletError> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text.strip_prefix("0x").unwrap_or(text), &mut bytes)
        .map(|()| bytes)
        .map_err(|_| damaged(format_args!("its {name} is not {N} bytes in hexadecimal")))
}

#[cfg(test)]
mod tests;
