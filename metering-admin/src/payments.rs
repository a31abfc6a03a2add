//! Payments that arrived on the chains: which account has them, and assigning unclaimed ones.
//!
//! [`scan`] only reads. [`assign`] credits a payment once, no matter how often it is called and by whom, because the
//! store records each transaction with the credits that it bought.

mod assign;
mod chain;
mod error;
mod evidence;
mod reason;
mod scan;
mod status;
mod token;
mod unread;

pub use assign::{Assigned, Assignment, AssignmentCredited, Worth, assign};
pub use chain::ReadableChain;
pub use error::{AssignError, ScanError};
pub use reason::{Reason, ReasonError};
pub use scan::{FoundPayment, Scan, ScanRequest, scan};
pub use status::{Hints, PaymentStatus, use_of};
pub use token::{NamedAmount, Token};
pub use unread::Unread;

use assign::Ready;
pub(crate) use token::named_amount;

use crate::action::Action;
use crate::administration::Administration;
use crate::audited::{Step, Target, json, nothing};
use crate::call::PAYMENT_ASSIGN;
use crate::wire::AssignmentDocument;

impl Administration {
    /// Assigns a payment as [`assign`] does, and logs it.
    ///
    /// # Errors
    /// As [`assign`].
    pub async fn assign(
        &self,
        action: &Action,
        chain: ReadableChain<'_>,
        assignment: &Assignment,
    ) -> Result<Assigned, AssignError> {
        let subject = format!("payment:{}:{}", chain.id(), assignment.tx);
        let target = Target::named(PAYMENT_ASSIGN, subject, action).asked(assignment.described());
        let now = self.clock.now();
        let ready = match Ready::read(&*self.store, chain, assignment, self.rates.as_deref(), now).await {
            Ok(ready) => ready,
            Err(error) => {
                self.log_refusal(target.entry(now), &error).await;
                return Err(error);
            }
        };
        let credit: Step<Ready, _, _> = |store, ready| Box::pin(ready.credit(store));
        self.audited(target, ready, nothing, credit, |assigned| json(&AssignmentDocument::from(assigned))).await
    }
}
