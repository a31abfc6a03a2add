//! Finds the one payment in a transaction that an operator wants to assign, or gives the reason why there is none.

use std::collections::BTreeSet;

use metering_core::chains::{Depth, Evidence, TokenUnits, TransactionStatus, TxRef};
use metering_core::payments::{Payment, PaymentFault, PaymentTarget, Plan};
use metering_core::service::payment_targets;
use metering_core::store::PaymentStore;

use crate::payments::chain::ReadableChain;
use crate::payments::error::AssignError;
use crate::payments::token::Token;

/// The payment in a transaction: for `plan` if given, or else to any address where plans are or were paid.
pub(super) async fn payment(
    store: &dyn PaymentStore,
    chain: ReadableChain<'_>,
    tx: TxRef,
    plans: &[Plan],
    plan: Option<&Plan>,
) -> Result<Payment, AssignError> {
    let name = || chain.name.to_owned();
    let status = chain.reader.transaction(&tx.hash).await;
    let evidence = match status.map_err(|error| AssignError::Chain { chain: name(), error })? {
        TransactionStatus::Mined(evidence) => evidence,
        TransactionStatus::Pending { required, .. } => {
            return Err(AssignError::Unconfirmed(Depth { confirmations: 0, required }));
        }
        TransactionStatus::Unknown => {
            return Err(AssignError::UnknownTransaction { chain: name(), hash: tx.hash });
        }
    };
    if let Some(plan) = plan {
        return plan.judge(chain.chain, tx, &evidence).map_err(|fault| unfit(plan, fault));
    }
    let payment = only_payment(&payment_targets(store, chain.chain, plans).await?, tx, &evidence, plans)?;
    if evidence.depth.is_enough() { Ok(payment) } else { Err(AssignError::Unconfirmed(evidence.depth)) }
}

fn only_payment(
    targets: &BTreeSet<PaymentTarget>,
    tx: TxRef,
    evidence: &Evidence,
    plans: &[Plan],
) -> Result<Payment, AssignError> {
    let (mut payments, mut unclear) = (Vec::new(), Vec::new());
    for target in targets {
        match target.payment(tx, evidence) {
            Ok(payment) if payment.amount.get() == 0 => {}
            Ok(payment) => payments.push(payment),
            Err(
                PaymentFault::NoTransfer { .. }
                | PaymentFault::WrongRecipient { .. }
                | PaymentFault::NoNativeTransfer { .. },
            ) => {}
            Err(PaymentFault::Reverted) => return Err(AssignError::Reverted),
            Err(fault) => unclear.push(fault),
        }
    }
    if payments.len() + unclear.len() > 1 && !payments.is_empty() {
        let amount = |payment: &Payment| Token::of(plans, &payment.target()).amount(payment.amount).to_string();
        let texts = payments.iter().map(amount).chain(unclear.iter().map(ToString::to_string));
        return Err(AssignError::Several(texts.collect()));
    }
    if let Some(fault) = unclear.into_iter().next() {
        return Err(AssignError::Unclear(fault));
    }
    payments.pop().ok_or(if targets.is_empty() { AssignError::NothingPaidHere } else { AssignError::NoPayment })
}

fn unfit(plan: &Plan, fault: PaymentFault) -> AssignError {
    let plan_key = plan.key();
    match fault {
        PaymentFault::Unconfirmed(depth) => AssignError::Unconfirmed(depth),
        PaymentFault::TooLittle { expected, found } => {
            let text = |units: TokenUnits| format!("{} {}", units.to_human(plan.token_decimals), plan.token_symbol);
            AssignError::TooLittle { plan: plan_key, price: text(expected), paid: text(found) }
        }
        fault => AssignError::NotForPlan { plan: plan_key, fault },
    }
}
