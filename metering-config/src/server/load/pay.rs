//! Checks the section `[pay]`, against the keys that it depends on.

use metering_core::chains::Address;

use crate::ConfigError;
use crate::server::{Config, PayConfig, Settle};

/// The least size of a request's head to accept, in bytes. Clients send all extensions of the offers back with a
/// payment.
const MIN_HEAD_BYTES: usize = 16 * 1_024;
/// The least gas that a transfer by signature uses.
const MIN_GAS: u64 = 60_000;

impl PayConfig {
    /// # Errors
    /// The first key that is missing or does not fit the others.
    pub(in crate::server) fn check(&self, config: &Config) -> Result<(), ConfigError> {
        let invalid = |key: &str, problem: &str| Err(ConfigError::key(format!("pay.{key}"), problem));
        if self.upto && self.settle != Settle::Own {
            return invalid("upto", "needs pay.settle = \"self\": clients sign the address of the gas wallet");
        }
        if self.upto && !self.keyless {
            return invalid("upto", "needs pay.keyless: requests with a key are paid for with its balance");
        }
        if self.settle == Settle::Off {
            return match self.offers.is_empty() {
                true => Ok(()),
                false => invalid("settle", "must be \"self\" or \"facilitator\": with \"off\", nothing can be offered"),
            };
        }
        if self.offers.is_empty() {
            return invalid("offers", "is required: a chain, an asset, amounts, and credits_per_unit");
        }
        match (self.settle, &self.gas_key_file, &self.facilitator) {
            (Settle::Own, None, _) => return invalid("gas_key_file", "is required with pay.settle = \"self\""),
            (Settle::Own, _, Some(_)) => return invalid("facilitator", "needs pay.settle = \"facilitator\""),
            (Settle::Facilitator, _, None) => return invalid("facilitator", "is required: the facilitator's URL"),
            (Settle::Facilitator, Some(_), _) => return invalid("gas_key_file", "needs pay.settle = \"self\""),
            _ => {}
        }
        if self.max_gas < MIN_GAS {
            return invalid("max_gas", &format!("must be at least {MIN_GAS}: a transfer uses about that much"));
        }
        if self.max_reverts == 0 {
            return invalid("max_reverts", "must be at least 1");
        }
        if self.confirmations == 0 {
            return invalid("confirmations", "must be at least 1");
        }
        if config.http.max_header_bytes < MIN_HEAD_BYTES {
            let problem = format!("must be at least {MIN_HEAD_BYTES} with pay.offers: payments contain the offers");
            return Err(ConfigError::key("http.max_header_bytes", problem));
        }
        for offer in &self.offers {
            match config.chains.get(&offer.chain) {
                None => return invalid("offers", &format!("there is no section [chains.{}]", offer.chain)),
                Some(chain) if chain.rpc_urls.is_empty() => {
                    return invalid("offers", &format!("chains.{} needs rpc_urls", offer.chain));
                }
                Some(_) if offer.asset == Address::ZERO => {
                    return invalid(
                        "offers",
                        "asset must be a token's contract; a chain's own coin cannot be signed for",
                    );
                }
                Some(_) if offer.amounts.is_empty() => return invalid("offers", "amounts must not be empty"),
                Some(_) => {}
            }
        }
        Ok(())
    }
}
