//! Why a wallet was not signed in.

use metering_core::chains::Address;

use crate::wire::MalformedPayment;
use crate::wire::x402::SignInFault;

/// Why a wallet was not signed in: the request is then refused as unpaid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignInRefusal {
    /// It cannot be read.
    #[error("{0}")]
    Malformed(MalformedPayment),
    /// It is for another service, chain or time.
    #[error("The sign-in was refused: {0}.")]
    Fault(SignInFault),
    /// Another wallet signed it, or another message.
    #[error("The signature is not by {wallet}.")]
    Signature {
        /// The wallet that it names.
        wallet: Address,
    },
    /// The wallet's key did not sign it, and contracts cannot sign in on this chain.
    #[error(
        "The signature is not by the key of {wallet}. If it is a contract, it signs in on the chain of its account, \
         eip155:{chain_id}."
    )]
    OtherChain {
        /// The wallet that it names.
        wallet: Address,
        /// The chain of the wallet's account.
        chain_id: u64,
    },
    /// The wallet has not paid for an account.
    #[error("The wallet {wallet} has no account here yet.")]
    NoAccount {
        /// The wallet.
        wallet: Address,
    },
    /// It was used before, or signed before the wallet had an account.
    #[error("This sign-in was used before. Each can be used once: sign the message of a new 402.")]
    Used,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_sentences() {
        let wallet = Address::ZERO;
        let faults = [
            SignInFault::Site { expected: "api.example.com".to_owned() },
            SignInFault::Chain { chain_id: 1 },
            SignInFault::NotNow,
        ];
        let others = [
            SignInRefusal::Malformed(MalformedPayment::NotAnObject { what: "SIGN-IN-WITH-X" }),
            SignInRefusal::Signature { wallet },
            SignInRefusal::OtherChain { wallet, chain_id: 1 },
            SignInRefusal::NoAccount { wallet },
            SignInRefusal::Used,
        ];
        for refusal in faults.map(SignInRefusal::Fault).into_iter().chain(others) {
            let text = refusal.to_string();
            assert!(text.starts_with(char::is_uppercase) && text.ends_with('.') && !text.contains(".."), "{text}");
        }
    }
}
