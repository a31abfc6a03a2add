//! Predicts whether a pending transaction can pay, so clients do not wait in vain.
//!
//! Only certain failures are reported. A transaction to an address with code may do anything: payments by relayers and
//! smart wallets look like that. So may a transaction of an unknown type.

use crate::chains::address::Address;
use crate::chains::chain::{Block, Depth, Evidence, PendingTransaction, TokenTransfer};
use crate::clock::Timestamp;
use crate::payments::payment::{PaymentFault, PaymentTarget};

impl PaymentTarget {
    /// The address to check for code before deciding whether a pending transaction can pay this target; `None` when
    /// code does not matter.
    pub(crate) fn address_to_check(&self, pending: &PendingTransaction) -> Option<Address> {
        let to = pending.native.to?;
        let plain = !pending.native.has_input && to != self.token && to != self.recipient;
        (self.token != Address::ZERO && plain).then_some(to)
    }

    /// The evidence that a pending transaction will leave if it succeeds; `None` when that cannot be predicted.
    /// `runs_code` is true if there is code at [`PaymentTarget::address_to_check`].
    pub(crate) fn predicted_evidence(&self, pending: &PendingTransaction, runs_code: bool) -> Option<Evidence> {
        let native = pending.native;
        let transfers = if self.token == Address::ZERO {
            Vec::new()
        } else if let (Some(to), Some((receiver, value))) = (native.to, pending.transfer)
            && to == self.token
        {
            vec![TokenTransfer { token: self.token, from: native.from, to: receiver, value }]
        } else if self.address_to_check(pending).is_some() && !runs_code {
            Vec::new()
        } else {
            return None;
        };
        // Placeholders: the transaction is in no block, and the checks on this evidence ignore the block.
        let block = Block { number: 0, hash: [0; 32], time: Timestamp::from_unix_millis(0) };
        let depth = Depth { confirmations: 0, required: u64::MAX };
        Some(Evidence { succeeded: true, block, depth, native: Some(native), transfers })
    }
}

impl PaymentFault {
    /// True if the fault does not depend on the block that mines the transaction. A wrong token amount does: some
    /// tokens move less than the call's amount.
    pub(crate) const fn is_certain(&self, native: bool) -> bool {
        match self {
            Self::NoTransfer { .. }
            | Self::WrongRecipient { .. }
            | Self::NoNativeTransfer { .. }
            | Self::HasInput
            | Self::WrongPayer { .. } => true,
            Self::WrongAmount { .. } | Self::TooLittle { .. } => native,
            Self::OtherChain { .. }
            | Self::Reverted
            | Self::SeveralTransfers { .. }
            | Self::PredatesQuote { .. }
            | Self::QuoteExpired { .. }
            | Self::PredatesService { .. }
            | Self::Unconfirmed(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chains::chain::NativeTransfer;
    use crate::chains::transaction::{TxHash, TxRef};
    use crate::chains::units::TokenUnits;

    const PAYER: Address = Address::from_bytes([1; 20]);
    const RECIPIENT: Address = Address::from_bytes([2; 20]);
    const TOKEN: Address = Address::from_bytes([3; 20]);
    const OTHER: Address = Address::from_bytes([4; 20]);

    fn plain(to: Option<Address>) -> PendingTransaction {
        let native = NativeTransfer { from: PAYER, to, value: TokenUnits::new(5), has_input: false };
        PendingTransaction { native, transfer: None }
    }

    fn calling(to: Address, transfer: Option<Address>) -> PendingTransaction {
        let native = NativeTransfer { has_input: true, ..plain(Some(to)).native };
        PendingTransaction { native, transfer: transfer.map(|to| (to, TokenUnits::new(5))) }
    }

    #[test]
    fn only_certain_failures_are_predicted() {
        let target = |token| PaymentTarget { chain_id: 1, token, recipient: RECIPIENT };
        let tx = TxRef { chain_id: 1, hash: TxHash::from_bytes([9; 32]) };
        // case, token to pay in, transaction, whether its target has code, whether it certainly does not pay
        let table = [
            ("the coin to the recipient", Address::ZERO, plain(Some(RECIPIENT)), false, false),
            ("the coin to another address", Address::ZERO, plain(Some(OTHER)), true, true),
            ("the coin into a new contract", Address::ZERO, plain(None), false, true),
            ("the coin with call data", Address::ZERO, calling(RECIPIENT, None), false, true),
            ("the token by its transfer", TOKEN, calling(TOKEN, Some(RECIPIENT)), true, false),
            ("the token to another address", TOKEN, calling(TOKEN, Some(OTHER)), true, true),
            ("another call of the token", TOKEN, calling(TOKEN, None), true, false),
            ("another token's transfer", TOKEN, calling(OTHER, Some(OTHER)), true, false),
            ("a call of a contract", TOKEN, calling(OTHER, None), true, false),
            ("call data to an address without code", TOKEN, calling(OTHER, None), false, false),
            ("a coin to an address without code", TOKEN, plain(Some(OTHER)), false, true),
            ("a coin to a contract", TOKEN, plain(Some(OTHER)), true, false),
            ("a coin to the token", TOKEN, plain(Some(TOKEN)), false, false),
            ("a coin to the recipient", TOKEN, plain(Some(RECIPIENT)), false, false),
            ("a new contract", TOKEN, plain(None), false, false),
        ];
        for (what, token, pending, runs_code, certain) in table {
            let target = target(token);
            let fault =
                target.predicted_evidence(&pending, runs_code).and_then(|evidence| target.payment(tx, &evidence).err());
            let predicted_evidence = fault.is_some_and(|fault| fault.is_certain(token == Address::ZERO));
            assert_eq!(predicted_evidence, certain, "{what}");
        }
    }

    #[test]
    fn code_is_checked_only_where_it_matters() {
        let target = PaymentTarget { chain_id: 1, token: TOKEN, recipient: RECIPIENT };
        assert_eq!(target.address_to_check(&plain(Some(OTHER))), Some(OTHER));
        for pending in [plain(None), plain(Some(TOKEN)), plain(Some(RECIPIENT)), calling(OTHER, None)] {
            assert_eq!(target.address_to_check(&pending), None, "{pending:?}");
        }
        let native = PaymentTarget { token: Address::ZERO, ..target };
        assert_eq!(native.address_to_check(&plain(Some(OTHER))), None);
    }
}
