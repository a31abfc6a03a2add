//! Sends a signed payment, as often as necessary: it is the same transaction each time.

use super::error::PayError;
use super::payer::Payer;
use super::payment::SignedPayment;
use super::status::PaymentStatus;
use crate::call::Call;
use crate::encoding::Word;
use crate::failure::{Failure, RpcError};
use crate::results::BatchResults;

const METHOD: &str = "eth_sendRawTransaction";

impl Payer {
    /// Sends a payment. It is not an error if it was sent before or is already in a block. A payment that was sent may
    /// still not be mined: see [`Payer::status`].
    ///
    /// # Errors
    /// [`PayError::Replaced`] if it will never be mined. After any other error it may have been sent, and can be sent
    /// again.
    pub async fn broadcast(&self, payment: &SignedPayment) -> Result<(), PayError> {
        self.check_signed(payment)?;
        let failure = match self.send(payment).await {
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        let (Failure::Rpc(refusal) | Failure::Refused(refusal)) = &failure else { return Err(self.failed(&failure)) };
        if refusal.is_already_known() {
            return Ok(());
        }
        // There are no error codes for these cases, and every node has its own messages. The chain's state is
        // unambiguous.
        match self.read_status(payment).await {
            Ok(PaymentStatus::Pending | PaymentStatus::Mined { .. }) => Ok(()),
            Ok(PaymentStatus::Replaced) => Err(PayError::Replaced),
            Ok(PaymentStatus::Unknown) if refusal.is_nonce_taken() => Err(PayError::NonceTaken),
            Ok(PaymentStatus::Unknown) if !failure.is_transient() => {
                Err(PayError::Refused(self.source.problem(&failure)))
            }
            Ok(PaymentStatus::Unknown) | Err(_) => Err(self.failed(&failure)),
        }
    }

    /// Sends it until the node responds. A lost response does no harm: the next one says that the transaction is
    /// already known.
    async fn send(&self, payment: &SignedPayment) -> Result<(), Failure> {
        let read = |results: &mut BatchResults<'_>| {
            let Word(hash) = results.next()?;
            if hash == *payment.hash.as_bytes() {
                Ok(())
            } else {
                Err(Failure::malformed(METHOD, "the hash of another transaction"))
            }
        };
        self.source.send_batch(&[Call::send(&payment.raw)], read).await
    }
}

impl RpcError {
    /// Whether the node already has the transaction.
    fn is_already_known(&self) -> bool {
        const WORDS: [&str; 6] =
            ["already known", "alreadyknown", "known transaction", "already imported", "already exists", "already in"];
        // Together with "nonce", such words refer to another transaction.
        self.says(&WORDS) && !self.says(&["nonce", "unknown"])
    }

    /// Whether another transaction with the same nonce is pending.
    fn is_nonce_taken(&self) -> bool {
        self.says(&["replacement", "replace existing"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_refusals_are_classified_by_message() {
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
            assert_eq!((error.is_already_known(), error.is_nonce_taken()), (known, taken), "{message}");
        }
    }
}
