//! Whom a request pays for.
//!
//! A credential for a challenge that was issued to a key pays for that key's account, although it may have replaced the
//! key in the headers. It does not act as the key: it pays for one request.

use metering_core::Error;
use metering_core::access::{Account, Caller, KeyFault, KeyHash};

use crate::challenges::{ChallengeCredential, Issued};
use crate::offers::PayRefusal;
use crate::signed_payments::SignedPayments;
use crate::wire::mpp::ChallengeFault;

impl SignedPayments {
    /// Who a request pays for: the account of its key, or of the key that its payment's challenge was issued to. `None`
    /// if there is no key.
    pub(crate) async fn paying_for(
        &self,
        caller: Caller<'_>,
        answer: Option<&ChallengeCredential>,
    ) -> Result<Option<(Account, KeyHash)>, Error> {
        let issued_to = match answer.map(|answer| answer.issued) {
            Some(Ok(issued)) => issued.key,
            // The authorization may be known; otherwise it is refused.
            Some(Err(_)) | None => None,
        };
        let hash = match (caller.key, issued_to) {
            (Some(key), _) => key.hash(),
            (None, Some(hash)) => hash,
            (None, None) => return Ok(None),
        };
        let holder = self.settling.store.key_holder(&hash).await?.ok_or(Error::KeyRefused(KeyFault::NotLive))?;
        holder.check(None, caller.address, self.clock.now())?;
        Ok(Some((holder.account, hash)))
    }

    /// Checks whether a payment's challenge was issued to this caller. If not, the payment is refused, unless it is
    /// stored already.
    pub(crate) async fn check_answer(
        &self,
        answer: &ChallengeCredential,
        caller: Caller<'_>,
        own: Option<&Account>,
    ) -> Result<(), Error> {
        let Issued { key, .. } = answer.issued.map_err(PayRefusal::Challenge)?;
        let others = Err(PayRefusal::Challenge(ChallengeFault::Key).into());
        match (caller.key, key) {
            (None, _) => Ok(()),
            (Some(_), None) => others,
            (Some(sent), Some(issued_to)) if sent.hash() == issued_to => Ok(()),
            // The key was rotated, or the account has several.
            (Some(_), Some(issued_to)) => {
                let holder = self.settling.store.key_holder(&issued_to).await?;
                let is_own = holder.zip(own).is_some_and(|(holder, own)| holder.account.id == own.id);
                if is_own { Ok(()) } else { others }
            }
        }
    }
}
