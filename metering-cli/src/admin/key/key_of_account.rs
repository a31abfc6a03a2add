use clap::Args;
use metering_admin::calls::keys::OfKey;
use metering_core::AccountId;
use metering_core::access::KeyId;

/// A key of an account.
#[derive(Debug, Args)]
pub(super) struct KeyOfAccount {
    /// The account's id.
    #[arg(value_name = "ORG")]
    pub(super) org: AccountId,
    /// The key's id.
    #[arg(value_name = "KEY")]
    pub(super) key: KeyId,
}

impl KeyOfAccount {
    /// The key in a call.
    pub(super) fn place(&self) -> OfKey {
        OfKey { id: self.org.clone(), key: self.key.clone() }
    }
}
