//! Where the wallet's private key comes from: the environment, an encrypted keystore file, or a prompt. Never an
//! argument, which every process on the machine can read.

use std::env;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use metering_evm::Wallet;
use zeroize::Zeroizing;

use crate::failure::Failure;

const KEY_VARIABLE: &str = "METERING_CLIENT_WALLET_KEY";
const PASSWORD_VARIABLE: &str = "METERING_CLIENT_KEYSTORE_PASSWORD";

/// Selects the wallet.
#[derive(Debug, Clone, Args)]
pub(crate) struct WalletArgs {
    /// The wallet's encrypted keystore file; its password comes from METERING_CLIENT_KEYSTORE_PASSWORD or a prompt.
    /// Without a keystore, the private key comes from METERING_CLIENT_WALLET_KEY or a prompt, never from an argument.
    #[arg(long, value_name = "FILE", env = "METERING_CLIENT_KEYSTORE", help_heading = "Wallet")]
    keystore: Option<PathBuf>,
}

impl WalletArgs {
    /// The wallet; prompts on the terminal if neither the environment nor a keystore has it.
    pub(crate) fn open(&self) -> Result<Wallet, Failure> {
        if let Some(wallet) = self.given()? {
            return Ok(wallet);
        }
        if !io::stdin().is_terminal() {
            return Err(Failure::Usage(format!(
                "no wallet given, and no terminal to prompt on: set {KEY_VARIABLE} to the private key, or name \
                the encrypted keystore file with --keystore"
            )));
        }
        read_key(&ask("The wallet's private key: ")?)
    }

    /// The wallet from the environment or the keystore; `None` if neither is given.
    pub(crate) fn given(&self) -> Result<Option<Wallet>, Failure> {
        let key = secret(KEY_VARIABLE)?;
        match (&self.keystore, key) {
            (Some(_), Some(_)) => Err(Failure::Usage(format!(
                "two wallets are given: {KEY_VARIABLE} and a keystore; give only one, so that the right one pays"
            ))),
            (Some(file), None) => open_keystore(file).map(Some),
            (None, Some(key)) => read_key(&key).map(Some),
            (None, None) => Ok(None),
        }
    }
}

fn open_keystore(file: &Path) -> Result<Wallet, Failure> {
    let named = file.display();
    let content = fs::read(file).map_err(|error| Failure::Failed(format!("cannot read {named}: {error}")))?;
    let password = match secret(PASSWORD_VARIABLE)? {
        Some(password) => password,
        None if io::stdin().is_terminal() => ask(&format!("The password of {named}: "))?,
        None => {
            let problem =
                format!("{named} needs its password, and there is no terminal to prompt on: set {PASSWORD_VARIABLE}");
            return Err(Failure::Usage(problem));
        }
    };
    Wallet::from_keystore(&content, &password).map_err(|error| Failure::Failed(format!("cannot open {named}: {error}")))
}

fn read_key(text: &str) -> Result<Wallet, Failure> {
    Wallet::from_hex(text.trim()).map_err(|error| Failure::Usage(format!("the wallet's private key: {error}")))
}

/// A variable's value, zeroized after use; an empty one counts as not set.
fn secret(variable: &str) -> Result<Option<Zeroizing<String>>, Failure> {
    match env::var(variable).map(Zeroizing::new) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err(Failure::Usage(format!("{variable} is not UTF-8"))),
    }
}

/// Prompts on the terminal without showing what is typed.
fn ask(prompt: &str) -> Result<Zeroizing<String>, Failure> {
    let typed = rpassword::prompt_password(prompt).map(Zeroizing::new);
    typed.map_err(|error| Failure::Failed(format!("cannot prompt on the terminal: {error}")))
}
