//! A private key, and the signatures it makes.

use std::fmt;

use k256::ecdsa::{SigningKey, VerifyingKey};
use metering_core::chains::{Address, TokenDomain, WalletSignature, signing_digest};
use metering_core::offers::Authorization;
use metering_pay::offers::{StatementSignature, StatementSigner};
use sha3::{Digest, Keccak256};
use zeroize::Zeroizing;

use super::error::WalletError;
use super::keystore;

/// A private key. It is displayed as its address, and erased from memory when it is dropped.
///
/// ```
/// use metering_core::chains::{WalletSignature, signer};
/// use metering_evm::Wallet;
///
/// let wallet = Wallet::from_hex("0x4646464646464646464646464646464646464646464646464646464646464646")?;
/// assert_eq!(format!("{wallet:?}"), "Wallet(0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f)");
/// let signature = WalletSignature::parse(&wallet.sign_message("hello"))?;
/// assert_eq!(signer("hello", &signature), Some(wallet.address()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Wallet {
    key: SigningKey,
    address: Address,
}

/// A signature of a 32-byte digest: two numbers, and which of two possible points the first one encodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) r: [u8; 32],
    pub(crate) s: [u8; 32],
    pub(crate) y_is_odd: bool,
}

impl Wallet {
    /// The wallet of a private key: 64 hexadecimal digits, with or without `0x`.
    ///
    /// # Errors
    /// When the text is malformed, or its number is not valid for the curve. The error never repeats the text.
    pub fn from_hex(text: &str) -> Result<Self, WalletError> {
        let text = text.trim();
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let mut bytes = Zeroizing::new([0; 32]);
        hex::decode_to_slice(digits, bytes.as_mut_slice()).map_err(|_| WalletError::Malformed)?;
        Self::from_bytes(&bytes)
    }

    /// The wallet of an encrypted key file (Web3 Secret Storage, version 3), as written by geth and other wallets.
    ///
    /// The file's parameters determine how long this takes: up to a few seconds.
    ///
    /// ```
    /// use metering_evm::{Wallet, WalletError};
    ///
    /// # // The example of the definition.
    /// # let file = r#"{"crypto": {"cipher": "aes-128-ctr", "cipherparams": {"iv": "6087dab2f9fdbbfaddc31a909735c1e6"},
    /// #     "ciphertext": "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46", "kdf": "pbkdf2",
    /// #     "kdfparams": {"c": 262144, "dklen": 32, "prf": "hmac-sha256",
    /// #         "salt": "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd"},
    /// #     "mac": "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2"},
    /// #     "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6", "version": 3}"#;
    /// let wallet = Wallet::from_keystore(file.as_bytes(), "testpassword")?;
    /// assert_eq!(wallet.address().to_checksummed(), "0x008AeEda4D805471dF9b2A5B0f38A0C3bCBA786b");
    /// assert_eq!(Wallet::from_keystore(file.as_bytes(), "guess").unwrap_err(), WalletError::WrongPassword);
    /// # Ok::<(), WalletError>(())
    /// ```
    ///
    /// # Errors
    /// [`WalletError::WrongPassword`], or the problem with the file. The error contains neither the password nor the
    /// file's contents.
    pub fn from_keystore(json: &[u8], password: &str) -> Result<Self, WalletError> {
        let (bytes, address) = keystore::decrypt(json, password)?;
        let wallet = Self::from_bytes(&bytes)?;
        match address {
            Some(address) if address != wallet.address => Err(WalletError::OtherAddress),
            _ => Ok(wallet),
        }
    }

    /// The wallet of a key file: either a private key as text, or an encrypted key file, which needs its password.
    ///
    /// # Errors
    /// As [`Wallet::from_hex`] or [`Wallet::from_keystore`]; [`WalletError::NoPassword`] if one is missing.
    pub fn from_key_file(content: &[u8], password: Option<&str>) -> Result<Self, WalletError> {
        if content.trim_ascii_start().starts_with(b"{") {
            return Self::from_keystore(content, password.ok_or(WalletError::NoPassword)?);
        }
        Self::from_hex(str::from_utf8(content).map_err(|_| WalletError::Malformed)?)
    }

    /// Its address.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.address
    }

    /// Signs a text as wallets do (EIP-191, `personal_sign`). Returns 65 bytes as `0x` and hexadecimal digits.
    #[must_use]
    pub fn sign_message(&self, text: &str) -> String {
        let signature = self.sign_digest(signing_digest(text));
        let v = 27 + u8::from(signature.y_is_odd);
        format!("0x{}{}{v:02x}", hex::encode(signature.r), hex::encode(signature.s))
    }

    /// Signs an authorization to transfer tokens (EIP-3009), for the token's contract.
    ///
    /// # Panics
    /// Never: a signature has 65 bytes.
    #[must_use]
    pub fn sign_authorization(&self, authorization: &Authorization, token: &TokenDomain) -> WalletSignature {
        self.wallet_signature(authorization.digest(token))
    }

    /// Signs a digest, with the lower of the two possible `s` (EIP-2). The same digest always gives the same signature
    /// (RFC 6979).
    pub(crate) fn sign_digest(&self, digest: [u8; 32]) -> Signature {
        let (signature, recovery) = self.key.sign_prehash_recoverable(&digest);
        let (r, s) = signature.split_bytes();
        Signature { r: r.into(), s: s.into(), y_is_odd: recovery.is_y_odd() }
    }

    fn wallet_signature(&self, digest: [u8; 32]) -> WalletSignature {
        let signature = self.sign_digest(digest);
        let v = 27 + u8::from(signature.y_is_odd);
        WalletSignature::from_bytes([&signature.r[..], &signature.s, &[v]].concat()).expect("a signature has 65 bytes")
    }

    fn from_bytes(bytes: &[u8; 32]) -> Result<Self, WalletError> {
        let key = SigningKey::from_slice(bytes).map_err(|_| WalletError::OutOfRange)?;
        let address = address_of(key.verifying_key());
        Ok(Self { key, address })
    }
}

impl StatementSigner for Wallet {
    fn sign(&self, digest: [u8; 32], _json: &[u8]) -> StatementSignature {
        StatementSignature::Eip712(self.wallet_signature(digest))
    }
}

impl fmt::Debug for Wallet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Wallet").field(&self.address).finish()
    }
}

/// The last twenty bytes of the hash of the point.
fn address_of(key: &VerifyingKey) -> Address {
    let point = key.to_sec1_point(false);
    let hash: [u8; 32] = Keccak256::digest(&point.as_bytes()[1..]).into();
    let mut address = [0; 20];
    address.copy_from_slice(&hash[12..]);
    Address::from_bytes(address)
}

#[cfg(test)]
mod tests {
    use metering_core::chains::signer;
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "4646464646464646464646464646464646464646464646464646464646464646";

    #[test]
    fn known_keys_have_their_addresses() {
        // key, address; from EIP-155, from the Web3 Secret Storage definition, and of anvil's first account
        let table = [
            (KEY, "0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f"),
            (
                "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d",
                "0x008aeeda4d805471df9b2a5b0f38a0c3bcba786b",
            ),
            (
                "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
                "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
            ),
        ];
        for (key, address) in table {
            for text in [key.to_owned(), key.to_uppercase().replace("0X", "0x"), format!(" {key}\n")] {
                assert_eq!(Wallet::from_hex(&text).unwrap().address().to_string(), address, "{text}");
            }
        }
    }

    #[test]
    fn invalid_key_is_refused_without_repeating_it() {
        let order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
        // text, error
        let table = [
            (String::new(), WalletError::Malformed),
            ("0x".to_owned(), WalletError::Malformed),
            (KEY[2..].to_owned(), WalletError::Malformed),
            (format!("{KEY}46"), WalletError::Malformed),
            (format!("0x0x{}", &KEY[4..]), WalletError::Malformed),
            (KEY.replacen("46", "4g", 1), WalletError::Malformed),
            (KEY.replacen("46", "€", 1), WalletError::Malformed),
            ("0".repeat(64), WalletError::OutOfRange),
            (order.to_owned(), WalletError::OutOfRange),
            ("f".repeat(64), WalletError::OutOfRange),
        ];
        for (text, expected) in table {
            let error = Wallet::from_hex(&text).unwrap_err();
            assert_eq!(error, expected, "{text:?}");
            assert!(text.len() < 10 || !format!("{error} {error:?}").contains(&text[..10]), "{error}");
        }
    }

    #[test]
    fn a_key_file_has_a_key_or_is_encrypted() {
        let keystore =
            br#" {"crypto": {"cipher": "aes-128-ctr", "cipherparams": {"iv": "6087dab2f9fdbbfaddc31a909735c1e6"},
            "ciphertext": "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46", "kdf": "pbkdf2",
            "kdfparams": {"c": 262144, "dklen": 32, "prf": "hmac-sha256",
                "salt": "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd"},
            "mac": "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2"},
            "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6", "version": 3}"#;
        let key = format!("0x{KEY}\n");
        let address = |content: &[u8], password| {
            Wallet::from_key_file(content, password).map(|wallet| wallet.address().to_string())
        };
        let (plain, encrypted) =
            ("0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f", "0x008aeeda4d805471df9b2a5b0f38a0c3bcba786b");
        assert_eq!(address(key.as_bytes(), None).as_deref(), Ok(plain));
        assert_eq!(address(keystore, Some("testpassword")).as_deref(), Ok(encrypted));
        assert_eq!(address(keystore, None), Err(WalletError::NoPassword));
        assert_eq!(address(keystore, Some("guess")), Err(WalletError::WrongPassword));
        for content in [&b""[..], b"\xff", b"key"] {
            assert_eq!(address(content, None), Err(WalletError::Malformed));
        }
    }

    #[test]
    fn a_wallet_is_shown_as_its_address() {
        let wallet = Wallet::from_hex(KEY).unwrap();
        assert_eq!(format!("{wallet:?}"), "Wallet(0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f)");
    }

    #[test]
    fn text_signature_matches_other_wallets() {
        // The example in the documentation of `web3.eth.accounts.sign`; eth-account has it too.
        let wallet = Wallet::from_hex("0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318").unwrap();
        let expected = concat!(
            "0xb91467e570a6466aa9e9876cbcd013baba02900b8979d43fe208a4a4f339f5fd",
            "6007e74cd82e037b800186422fc2da167c747ef045e5d18a5f5d4300f8e1a029",
            "1c",
        );
        assert_eq!(wallet.sign_message("Some data"), expected);
    }

    #[test]
    fn authorization_is_signed_as_published_clients_do() {
        // What `@x402/evm` 2.27.0 signed with the second account of anvil.
        let key = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
        let expected = "37ee65cd4e139b9478e44acabdd5f6802993591aaeb2f01a38b38069ba9501a513649d70b1d7e4b6ffa34836f9d218bdee8263d490cbe1fca234446e13c137801b";
        let wallet = Wallet::from_hex(key).unwrap();
        let contract = "0x036CbD53842c5426634e7929541eC2318f3dCF7e".parse().unwrap();
        let usdc = TokenDomain { name: "USDC".to_owned(), version: "2".to_owned(), chain_id: 84_532, contract };
        let authorization = Authorization {
            from: wallet.address(),
            to: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C".parse().unwrap(),
            value: metering_core::chains::TokenUnits::new(50_000),
            valid_after: 0,
            valid_before: 1_750_000_300,
            nonce: "0x01080f161d242b323940474e555c636a71787f868d949ba2a9b0b7bec5ccd3da".parse().unwrap(),
        };
        let signature = wallet.sign_authorization(&authorization, &usdc);
        assert_eq!(hex::encode(signature.as_bytes()), expected);
        assert!(authorization.is_signed_by_key(&usdc, &signature));
    }

    proptest! {
        #[test]
        fn the_signer_is_recovered_by_the_service(seed in 1_u8..=254, text in "\\PC{0,80}") {
            let wallet = Wallet::from_hex(&hex::encode([seed; 32])).unwrap();
            // `parse` rejects the higher `s`.
            let signature = WalletSignature::parse(&wallet.sign_message(&text)).unwrap();
            prop_assert_eq!(signature.as_bytes().len(), 65);
            prop_assert!(matches!(signature.as_bytes()[64], 27 | 28));
            prop_assert_eq!(signer(&text, &signature), Some(wallet.address()));
        }
    }
}
