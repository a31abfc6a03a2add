//! Sends a signed payment, as often as it takes: it is the same transaction each time.

use super::error::PayError;
use super::payer::Payer;
use super::payment::SignedPayment;
use super::standing::Standing;
use crate::answers::Answers;
use crate::call::Call;
use crate::encoding::Word;
use crate::failure::{Failure, RpcError};

const METHOD: &str = "eth_sendRawTransaction";

impl Payer {
    /// Sends a payment. That it was sent before, or is in a block already, is no error. That it was sent does not mean
    /// that it will be mined: see [`Payer::standing`].
    ///
    /// # Errors
    /// [`PayError::Replaced`] when it will never be mined; otherwise it may have been sent, or can be sent again.
    pub async fn broadcast(&self, payment: &SignedPayment) -> Result<(), PayError> {
        self.check_signed(payment)?;
        let failure = match self.send(payment).await {
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        let Failure::Rpc(refusal) = &failure else { return Err(self.failed(&failure)) };
        if refusal.is_already_known() {
            return Ok(());
        }
        // Nodes have no codes for these, and each has words of its own. What the chain shows needs none.
        match self.look(payment).await {
            Ok(Standing::Pending | Standing::Mined { .. }) => Ok(()),
            Ok(Standing::Replaced) => Err(PayError::Replaced),
            Ok(Standing::Unknown) if refusal.is_place_taken() => Err(PayError::PlaceTaken),
            Ok(Standing::Unknown) if !failure.is_transient() => Err(PayError::Refused(self.source.complaint(&failure))),
            Ok(Standing::Unknown) | Err(_) => Err(self.failed(&failure)),
        }
    }

    /// Sends it until the node has answered. The answer is never the only thing that is believed: where one was lost,
    /// the next says that the transaction is known.
    async fn send(&self, payment: &SignedPayment) -> Result<(), Failure> {
        let read = |answers: &mut Answers<'_>| {
            let Word(hash) = answers.next()?;
            if hash == *payment.hash.as_bytes() {
                Ok(())
            } else {
                Err(Failure::malformed(METHOD, "the hash of another transaction"))
            }
        };
        self.source.ask(&[Call::send(&payment.raw)], read).await
    }
}

impl RpcError {
    /// Whether the node has the transaction already.
    fn is_already_known(&self) -> bool {
        const WORDS: [&str; 6] =
            ["already known", "alreadyknown", "known transaction", "already imported", "already exists", "already in"];
        // Of a nonce such words mean another transaction.
        self.says(&WORDS) && !self.says(&["nonce", "unknown"])
    }

    /// Whether another transaction with the same nonce waits for a block.
    fn is_place_taken(&self) -> bool {
        self.says(&["replacement", "replace existing"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart_as_nodes_word_them() {
        // message, already known, place taken
        let table = [
            ("already known", true, false),
            ("AlreadyKnown", true, false),
            ("Known transaction", true, false),
            ("known transaction: 0x12", true, false),
            ("transaction already imported", true, false),
            ("Transaction is already in mempool", true, false),
            ("replacement transaction underpriced", false, true),
            ("ReplacementNotAllowed", false, true),
            ("could not replace existing tx", false, true),
            ("a transaction of this nonce already exists", false, false),
            ("unknown transaction type", false, false),
            ("nonce too low", false, false),
            ("transaction underpriced", false, false),
            ("insufficient funds for gas * price + value", false, false),
        ];
        for (message, known, taken) in table {
            let error = RpcError { code: -32_000, message: message.to_owned() };
            assert_eq!((error.is_already_known(), error.is_place_taken()), (known, taken), "{message}");
        }
    }
}
