//! Why a payment was refused, as x402 reports it.

use metering_core::named_enum;

use crate::offers::{AuthorizationFault, SettlementFailure};
use crate::wire::malformed_payment::MalformedPayment;

named_enum! {
    /// Why a payment was refused. The codes come from the specification (`specs/x402-specification-v2.md`, "Error
    /// Handling"), or of the reference implementation where that has none
    /// (`typescript/packages/mechanisms/evm/src/exact/facilitator/errors.ts`).
    #[non_exhaustive]
    pub enum SettleRefusal {
        /// It cannot be read.
        Malformed = "invalid_payload",
        /// It is of another version of x402.
        Version = "invalid_x402_version",
        /// It has a scheme that is not on offer.
        Scheme = "invalid_scheme",
        /// It is on a chain that no offer is paid on.
        Network = "invalid_network",
        /// It accepts none of the offers.
        Offer = "invalid_payment_requirements",
        /// It pays another recipient.
        Recipient = "invalid_exact_evm_payload_recipient_mismatch",
        /// It pays another amount.
        Amount = "invalid_exact_evm_payload_authorization_value_mismatch",
        /// It is not valid yet.
        NotYetValid = "invalid_exact_evm_payload_authorization_valid_after",
        /// It expired, or expires too soon.
        Expired = "invalid_exact_evm_payload_authorization_valid_before",
        /// The signature is not the payer's.
        Signature = "invalid_exact_evm_payload_signature",
        /// The payer's wallet is a contract that does not exist yet (ERC-6492).
        WalletNotDeployed = "eip6492_factory_not_allowed",
        /// Its nonce was used or cancelled.
        NonceUsed = "invalid_exact_evm_nonce_already_used",
        /// The payer has too few tokens.
        Balance = "insufficient_funds",
        /// The token's contract would refuse it.
        Simulation = "invalid_exact_evm_transaction_simulation_failed",
        /// The token's contract refused it.
        Transaction = "invalid_transaction_state",
        /// A permit's spender is not the proxy for `upto`.
        PermitSpender = "invalid_permit2_spender",
        /// A permit is for another token.
        PermitToken = "permit2_token_mismatch",
        /// A permit pays another recipient.
        PermitRecipient = "invalid_permit2_recipient_mismatch",
        /// A permit is for another amount.
        PermitAmount = "permit2_amount_mismatch",
        /// A permit is not valid yet.
        PermitNotYetValid = "permit2_not_yet_valid",
        /// A permit's deadline has passed, or is too soon.
        PermitExpired = "permit2_deadline_expired",
        /// A permit's signature is not the payer's.
        PermitSignature = "invalid_permit2_signature",
        /// A permit's nonce was used.
        PermitNonce = "permit2_invalid_nonce",
        /// A permit is for another facilitator.
        PermitFacilitator = "upto_facilitator_mismatch",
        /// The payer has not approved Permit2.
        PermitAllowance = "permit2_allowance_required",
        /// It cannot be checked or executed at the moment.
        Unavailable = "unexpected_settle_error",
    }
}

impl SettleRefusal {
    /// The same for a permit, whose faults have names of their own.
    #[must_use]
    pub const fn of_permit(self) -> Self {
        match self {
            Self::Recipient => Self::PermitRecipient,
            Self::Amount => Self::PermitAmount,
            Self::NotYetValid => Self::PermitNotYetValid,
            Self::Expired => Self::PermitExpired,
            Self::Signature => Self::PermitSignature,
            Self::NonceUsed => Self::PermitNonce,
            other => other,
        }
    }

    /// Why a payment would fail, from the unstandardised message of its token or of a facilitator: too few tokens, as
    /// the reference implementation recognises it, or another reason.
    #[must_use]
    pub fn of_simulation(reason: &str) -> Self {
        let reason = reason.to_ascii_lowercase();
        let follows = |first: &str, then: &str| reason.split_once(first).is_some_and(|(_, rest)| rest.contains(then));
        // The last is the selector of `ERC20InsufficientBalance` (ERC-6093).
        let is_poor = follows("insufficient", "balance")
            || follows("exceeds", "balance")
            || reason.contains("insufficient_funds")
            || reason.contains("e450d38c");
        if is_poor { Self::Balance } else { Self::Simulation }
    }
}

impl From<&MalformedPayment> for SettleRefusal {
    fn from(malformed: &MalformedPayment) -> Self {
        let MalformedPayment::Field { field, .. } = malformed else { return Self::Malformed };
        match field.as_str() {
            "x402Version" => Self::Version,
            "scheme" | "accepted.scheme" => Self::Scheme,
            "network" | "accepted.network" => Self::Network,
            "payload.permit2Authorization.spender" => Self::PermitSpender,
            "payload.permit2Authorization.permitted.token" => Self::PermitToken,
            _ => Self::Malformed,
        }
    }
}

impl From<AuthorizationFault> for SettleRefusal {
    fn from(fault: AuthorizationFault) -> Self {
        match fault {
            AuthorizationFault::Recipient { .. } => Self::Recipient,
            AuthorizationFault::Amount { .. } => Self::Amount,
            AuthorizationFault::NotYetValid { .. } => Self::NotYetValid,
            AuthorizationFault::Expired { .. } => Self::Expired,
            AuthorizationFault::Signature { .. } => Self::Signature,
            AuthorizationFault::NotDeployed { .. } => Self::WalletNotDeployed,
        }
    }
}

impl From<SettlementFailure> for SettleRefusal {
    fn from(failure: SettlementFailure) -> Self {
        match failure {
            SettlementFailure::Expired => Self::Expired,
            SettlementFailure::Cancelled => Self::NonceUsed,
            SettlementFailure::Refused => Self::Transaction,
        }
    }
}

#[cfg(test)]
mod tests {
    use metering_core::chains::Address;
    use metering_core::chains::TokenUnits;

    use super::*;

    #[test]
    fn an_empty_wallet_is_recognised_in_the_words_of_many() {
        // reason, refusal
        let table = [
            ("execution reverted: ERC20: transfer amount exceeds balance", SettleRefusal::Balance),
            ("execution reverted: custom error 0xe450d38c000000", SettleRefusal::Balance),
            ("ERC20InsufficientBalance(0x12, 0, 5)", SettleRefusal::Balance),
            ("invalid_exact_evm_insufficient_balance", SettleRefusal::Balance),
            ("insufficient_funds", SettleRefusal::Balance),
            ("execution reverted: FiatTokenV2: authorization is used", SettleRefusal::Simulation),
            ("insufficient allowance", SettleRefusal::Simulation),
            ("", SettleRefusal::Simulation),
        ];
        for (reason, refusal) in table {
            assert_eq!(SettleRefusal::of_simulation(reason), refusal, "{reason}");
        }
        assert_eq!(SettleRefusal::Balance.as_str(), "insufficient_funds");
    }

    #[test]
    fn what_cannot_be_read_has_the_code_of_its_field() {
        let of = |field: &str| MalformedPayment::Field { what: "X-PAYMENT", field: field.to_owned(), problem: "no" };
        for (field, code) in [
            ("x402Version", "invalid_x402_version"),
            ("accepted.scheme", "invalid_scheme"),
            ("network", "invalid_network"),
            ("payload.signature", "invalid_payload"),
            ("payload.permit2Authorization.spender", "invalid_permit2_spender"),
            ("payload.permit2Authorization.permitted.token", "permit2_token_mismatch"),
        ] {
            assert_eq!(SettleRefusal::from(&of(field)).as_str(), code);
        }
        let not_an_object = MalformedPayment::NotAnObject { what: "X-PAYMENT" };
        assert_eq!(SettleRefusal::from(&not_an_object), SettleRefusal::Malformed);
    }

    #[test]
    fn faults_and_failures_have_the_codes_of_the_specification() {
        let (expected, found) = (Address::ZERO, Address::from_bytes([1; 20]));
        let (units, more) = (TokenUnits::new(1), TokenUnits::new(2));
        let faults = [
            (AuthorizationFault::Recipient { expected, found }, "invalid_exact_evm_payload_recipient_mismatch"),
            (
                AuthorizationFault::Amount { expected: units, found: more },
                "invalid_exact_evm_payload_authorization_value_mismatch",
            ),
            (AuthorizationFault::NotYetValid { valid_after: 1 }, "invalid_exact_evm_payload_authorization_valid_after"),
            (AuthorizationFault::Expired { valid_before: 1 }, "invalid_exact_evm_payload_authorization_valid_before"),
            (AuthorizationFault::Signature { payer: found }, "invalid_exact_evm_payload_signature"),
            (AuthorizationFault::NotDeployed { payer: found }, "eip6492_factory_not_allowed"),
        ];
        for (fault, code) in faults {
            assert_eq!(SettleRefusal::from(fault).as_str(), code);
        }
        let failures = SettlementFailure::ALL.map(|failure| SettleRefusal::from(failure).as_str());
        let codes = [
            "invalid_exact_evm_payload_authorization_valid_before",
            "invalid_exact_evm_nonce_already_used",
            "invalid_transaction_state",
        ];
        assert_eq!(failures, codes);
    }
}
