//! `metering rotate`: replaces an account's key. The proof of ownership is a signature of the wallet that paid for the
//! account, or the key itself.

use std::io::Write;

use clap::Args;
use metering_client::ClientError;
use metering_core::chains::Address;
use metering_core::charging::IdempotencyKey;
use metering_evm::Wallet;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::client::access::current_key;
use crate::client::payments::payment::consent::Consent;
use crate::client::payments::payment::paid::Issued;
use crate::client::payments::payment::proof::{Request, printable};
use crate::client::payments::wallet::WalletArgs;
use crate::client::session::{ProfileArgs, Session};
use crate::failure::Failure;
use crate::output::{Format, notice, write_json};

/// Replace a key: a lost one with the wallet that paid, or the profile's own with --current.
///
/// The new key is stored in the profile; the old one stops working immediately.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering rotate
  metering rotate --keystore wallet.json --yes
  metering rotate --current

With a wallet whose key is not on this machine, such as a contract wallet:
  metering rotate --address 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed --challenge-only
  metering rotate --address 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed --nonce BvLyLhI2 --signature 0x60554693")]
pub(crate) struct RotateArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// Replace the profile's key with the key itself as proof; needs no wallet.
    #[arg(long, conflicts_with = "address")]
    current: bool,
    /// Get the key of a rotation whose response was lost; the error message has the value.
    #[arg(long, value_name = "KEY", requires = "current", value_parser = IdempotencyKey::parse)]
    idempotency_key: Option<IdempotencyKey>,
    /// The wallet's address; required if its key is not on this machine.
    #[arg(long, value_name = "ADDRESS")]
    address: Option<Address>,
    /// Only print the text to sign.
    #[arg(long, requires = "address", conflicts_with_all = ["nonce", "signature"])]
    challenge_only: bool,
    /// The nonce of the text that you signed elsewhere.
    #[arg(long, value_name = "NONCE", requires_all = ["address", "signature"])]
    nonce: Option<String>,
    /// The signature that you made elsewhere.
    #[arg(long, value_name = "HEX", requires_all = ["address", "nonce"])]
    signature: Option<String>,
    /// Replace the profile's key even if it is the key of another account.
    #[arg(long)]
    replace_key: bool,
    /// Never prompt; refuse to sign a message that names another service.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    wallet: WalletArgs,
    #[command(flatten)]
    format: Format,
}

/// The response to `POST /api-key/recover/challenge`.
#[derive(Debug, Deserialize, Serialize)]
struct Challenge {
    nonce: String,
    message: String,
    expires_at: String,
}

impl RotateArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut session = self.profile.open()?;
        if let Some(address) = self.address.filter(|_| self.challenge_only) {
            return self.write_challenge(&Challenge::request(&session, address).await?, address, out);
        }
        let issued = match (self.address, &self.nonce, &self.signature) {
            _ if self.current => {
                self.check_profile_has_key(&session)?;
                current_key::replaced(&session, self.idempotency_key.as_ref()).await?
            }
            (Some(address), Some(nonce), Some(signature)) => {
                self.check_same_account(&session, address).await?;
                verify(&session, address, nonce, signature).await?
            }
            _ => {
                let wallet = self.wallet.open()?;
                if self.address.is_some_and(|address| address != wallet.address()) {
                    let found = wallet.address().to_checksummed();
                    return Err(Failure::Usage(format!(
                        "--address does not match the wallet, whose address is {found}"
                    )));
                }
                self.check_same_account(&session, wallet.address()).await?;
                rotated(&session, &wallet, Consent { yes: self.yes }).await?
            }
        };
        issued.keep(&mut session, out)?;
        let done = "The account has a new key; the old one no longer works.";
        issued.account(&session, "rotated").write(out, self.format.json, done)?;
        out.flush()?;
        issued.note_remaining_keys();
        Ok(())
    }

    fn write_challenge(&self, challenge: &Challenge, address: Address, out: &mut dyn Write) -> Result<(), Failure> {
        if self.format.json {
            return write_json(out, challenge);
        }
        notice(&format!(
            "Sign the text below exactly as it is (EIP-191, personal_sign) before {}, without a trailing line break.\n\
            Then run:\n  metering rotate --address {} --nonce {} --signature 0x...\n",
            challenge.expires_at,
            address.to_checksummed(),
            challenge.nonce
        ));
        Ok(writeln!(out, "{}", printable(&challenge.message))?)
    }

    /// Refuses to replace a key that works and belongs to another account.
    async fn check_same_account(&self, session: &Session, address: Address) -> Result<(), Failure> {
        if self.replace_key || owns_key(session, address).await? != Some(false) {
            return Ok(());
        }
        Err(another_key(session))
    }

    /// Refuses to replace a key from the environment if the profile has another one, which the new key would overwrite.
    fn check_profile_has_key(&self, session: &Session) -> Result<(), Failure> {
        let settings = &session.profile.settings;
        let is_other_url = settings.url.as_ref().is_some_and(|url| url != session.url());
        let key = session.key()?.hash();
        let is_other = settings.api_key.as_ref().is_some_and(|stored| is_other_url || stored.hash() != key);
        if is_other && !self.replace_key { Err(another_key(session)) } else { Ok(()) }
    }
}

fn another_key(session: &Session) -> Failure {
    Failure::Conflict(format!(
        "profile {} has the key of another account, which would be lost: choose another profile with --profile, or \
         add --replace-key",
        session.profile.name()
    ))
}

/// Whether the profile's key belongs to the account that the wallet paid for; `None` if there is no working key.
pub(crate) async fn owns_key(session: &Session, wallet: Address) -> Result<Option<bool>, Failure> {
    #[derive(Deserialize)]
    struct Balance {
        payer_address: Option<Address>,
    }
    let settings = &session.profile.settings;
    let Some(key) = settings.api_key.clone() else { return Ok(None) };
    if settings.url.as_ref().is_some_and(|url| url != session.url()) {
        // It belongs to another service. That service must not see this wallet, and this service must not see that key.
        return Ok(Some(false));
    }
    match session.anonymous().with_key(key).get("/credits/balance").await {
        Ok(response) => Ok(Some(response.json::<Balance>()?.payer_address == Some(wallet))),
        Err(ClientError::Refused(refusal)) if refusal.status == 401 => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Rotates with a wallet on this machine.
pub(crate) async fn rotated(session: &Session, wallet: &Wallet, consent: Consent) -> Result<Issued, Failure> {
    let challenge = Challenge::request(session, wallet.address()).await?;
    let effect = "Signing it replaces the account's API key.";
    let request = Request { service: session.url(), message: &challenge.message, effect };
    request.is_agreed(consent).await?;
    verify(session, wallet.address(), &challenge.nonce, &wallet.sign_message(&challenge.message)).await
}

async fn verify(session: &Session, address: Address, nonce: &str, signature: &str) -> Result<Issued, Failure> {
    let proof = json!({"address": address, "nonce": nonce, "signature": signature});
    match session.anonymous().post("/api-key/recover/verify", &proof).await {
        Ok(response) => Ok(response.json()?),
        Err(ClientError::Unreachable(why)) => Err(Failure::TryLater(format!(
            "the service did not respond ({why}): the old key may have been replaced; run `metering rotate` again to \
            get another"
        ))),
        Err(error) => Err(error.into()),
    }
}

impl Challenge {
    async fn request(session: &Session, address: Address) -> Result<Self, Failure> {
        let wallet = json!({"address": address});
        let response = session.anonymous().post("/api-key/recover/challenge", &wallet).await?;
        let challenge: Self = response.json()?;
        let request = Request { service: session.url(), message: &challenge.message, effect: "" };
        request.names(&[&address.to_string(), &challenge.nonce])?;
        Ok(challenge)
    }
}
