//! Derives a key from the password of a key file: scrypt (RFC 7914) or PBKDF2 (RFC 8018), within bounds.

use pbkdf2::pbkdf2_hmac;
use pbkdf2::sha2::Sha256;
use scrypt::{Params, scrypt};
use serde::Deserialize;
use serde_json::Value;
use zeroize::Zeroizing;

use crate::wallet::error::WalletError;

/// 32 secret bytes, erased when they are dropped.
pub(super) type Secret = Zeroizing<[u8; 32]>;

/// The maximum memory that a file may use (128·N·r). Wallets use at most 256 MiB.
const SCRYPT_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// The maximum mixing work that a file may require (N·r·p). Wallets use 2²¹, which takes about a second.
const SCRYPT_WORK_MAX: u64 = 1 << 23;

/// The maximum number of rounds that a file may require. Wallets use up to a million.
const PBKDF2_ROUNDS_MAX: u32 = 10_000_000;

/// The length of the derived key: one half is for the cipher, the other for the MAC.
const DERIVED_BYTES: u64 = 32;

/// A derivation whose cost is within bounds.
#[derive(Debug)]
pub(super) enum Derivation {
    Scrypt { params: Params, salt: Vec<u8> },
    Pbkdf2 { rounds: u32, salt: Vec<u8> },
}

#[derive(Deserialize)]
struct ScryptParams {
    n: u64,
    r: u32,
    p: u32,
    dklen: u64,
    salt: String,
}

#[derive(Deserialize)]
struct Pbkdf2Params {
    c: u32,
    prf: String,
    dklen: u64,
    salt: String,
}

impl Derivation {
    /// The derivation that `kdf` and `kdfparams` of a file describe.
    pub(super) fn parse(kdf: &str, params: Value) -> Result<Self, WalletError> {
        let wrong = |_| damaged("its kdfparams are missing or invalid");
        match kdf {
            "scrypt" => serde_json::from_value::<ScryptParams>(params).map_err(wrong)?.derivation(),
            "pbkdf2" => serde_json::from_value::<Pbkdf2Params>(params).map_err(wrong)?.derivation(),
            _ => Err(unsupported("its kdf is neither scrypt nor pbkdf2")),
        }
    }

    pub(super) fn derive(&self, password: &str) -> Result<Secret, WalletError> {
        let mut derived = Zeroizing::new([0; 32]);
        match self {
            Self::Scrypt { params, salt } => scrypt(password.as_bytes(), salt, params, derived.as_mut_slice())
                .map_err(|_| unsupported("scrypt does not accept its kdfparams"))?,
            Self::Pbkdf2 { rounds, salt } => {
                pbkdf2_hmac::<Sha256>(password.as_bytes(), salt, *rounds, derived.as_mut_slice());
            }
        }
        Ok(derived)
    }
}

impl ScryptParams {
    fn derivation(&self) -> Result<Derivation, WalletError> {
        let (n, r, p) = (self.n, u64::from(self.r), u64::from(self.p));
        if !n.is_power_of_two() || n < 2 || r == 0 || p == 0 {
            return Err(damaged("its kdfparams are not valid for scrypt"));
        }
        let bytes = n.saturating_mul(r).saturating_mul(128);
        let work = n.saturating_mul(r).saturating_mul(p);
        // The p blocks also take memory.
        if bytes > SCRYPT_BYTES_MAX || r.saturating_mul(p).saturating_mul(128) > SCRYPT_BYTES_MAX {
            return Err(WalletError::TooCostly(format!("more than {} MiB of memory", SCRYPT_BYTES_MAX >> 20)));
        }
        if work > SCRYPT_WORK_MAX {
            return Err(WalletError::TooCostly("more than four times the usual work".to_owned()));
        }
        let log_n = u8::try_from(n.trailing_zeros()).unwrap_or(u8::MAX);
        let params =
            Params::new(log_n, self.r, self.p).map_err(|_| damaged("its kdfparams are not valid for scrypt"))?;
        check_length(self.dklen)?;
        Ok(Derivation::Scrypt { params, salt: salt(&self.salt)? })
    }
}

impl Pbkdf2Params {
    fn derivation(&self) -> Result<Derivation, WalletError> {
        if self.prf != "hmac-sha256" {
            return Err(unsupported("its prf is not hmac-sha256"));
        }
        if self.c == 0 {
            return Err(damaged("its kdfparams are not valid for PBKDF2"));
        }
        if self.c > PBKDF2_ROUNDS_MAX {
            return Err(WalletError::TooCostly(format!("more than {PBKDF2_ROUNDS_MAX} rounds")));
        }
        check_length(self.dklen)?;
        Ok(Derivation::Pbkdf2 { rounds: self.c, salt: salt(&self.salt)? })
    }
}

fn check_length(dklen: u64) -> Result<(), WalletError> {
    if dklen == DERIVED_BYTES { Ok(()) } else { Err(unsupported(format_args!("its dklen is {dklen}, not 32"))) }
}

fn salt(text: &str) -> Result<Vec<u8>, WalletError> {
    hex::decode(text.strip_prefix("0x").unwrap_or(text)).map_err(|_| damaged("its salt is not hexadecimal"))
}

pub(super) fn damaged(what: impl std::fmt::Display) -> WalletError {
    WalletError::Damaged(what.to_string())
}

pub(super) fn unsupported(what: impl std::fmt::Display) -> WalletError {
    WalletError::Unsupported(what.to_string())
}
