//! Finds the one payment in a transaction that an operator wants to assign, or says why there is none.

use std::collections::BTreeSet;

use metering_core::PaymentStore;
use metering_core::chains::{Depth, Evidence, TransactionStatus, TxRef};
use metering_core::payments::{Payment, PaymentFault, PaymentTarget, Plan};
use metering_core::service::payment_targets;

use super::super::chains::OpenChain;
use super::super::token::Token;
use crate::failure::Failure;

/// The payment in a transaction: for `plan` if given, or else to any address where plans are or were paid.
pub(super) async fn payment(
    store: &dyn PaymentStore,
    chain: &OpenChain,
    tx: TxRef,
    plans: &[Plan],
    plan: Option<&Plan>,
) -> Result<Payment, Failure> {
    let evidence = match chain.transaction(&tx.hash).await? {
        TransactionStatus::Mined(evidence) => evidence,
        TransactionStatus::Pending { required, .. } => return Err(unconfirmed(Depth { confirmations: 0, required })),
        TransactionStatus::Unknown => {
            return Err(Failure::NotFound(format!("chain {} has no transaction {}", chain.name, tx.hash)));
        }
    };
    match plan {
        Some(plan) => plan.judge(&chain.chain, tx, &evidence).map_err(|fault| unfit(plan, &fault)),
        None => {
            let payment = only_payment(&payment_targets(store, &chain.chain, plans).await?, tx, &evidence, plans)?;
            if evidence.depth.is_enough() { Ok(payment) } else { Err(unconfirmed(evidence.depth)) }
        }
    }
}

fn only_payment(
    targets: &BTreeSet<PaymentTarget>,
    tx: TxRef,
    evidence: &Evidence,
    plans: &[Plan],
) -> Result<Payment, Failure> {
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
            Err(fault @ PaymentFault::Reverted) => return Err(Failure::Failed(fault.to_string())),
            Err(fault) => unclear.push(fault),
        }
    }
    match (payments.as_slice(), unclear.as_slice()) {
        ([_], []) => payments.pop().ok_or_else(|| no_payment(targets)),
        ([], []) => Err(no_payment(targets)),
        ([], [fault, ..]) => Err(Failure::Failed(format!(
            "it is not clear what the transaction pays: {fault} Nothing was assigned; to credit it anyway, use \
             `metering admin account grant`"
        ))),
        (payments, unclear) => {
            let amount = |payment: &Payment| Token::of(plans, &payment.target()).amount(payment.amount).to_string();
            let texts = payments.iter().map(amount).chain(unclear.iter().map(ToString::to_string));
            Err(Failure::Failed(format!(
                "the transaction contains several payments: {}; choose one with --plan",
                texts.collect::<Vec<_>>().join(", ")
            )))
        }
    }
}

fn no_payment(targets: &BTreeSet<PaymentTarget>) -> Failure {
    Failure::Failed(if targets.is_empty() {
        "no plan is paid on this chain, so no transfer on it counts as a payment".to_owned()
    } else {
        "the transaction has no transfer to a recipient of the chain's plans in the token of such a plan".to_owned()
    })
}

fn unfit(plan: &Plan, fault: &PaymentFault) -> Failure {
    match fault {
        PaymentFault::Unconfirmed(depth) => unconfirmed(*depth),
        PaymentFault::TooLittle { expected, found } => Failure::Failed(format!(
            "plan {} costs {} {symbol}, but only {} {symbol} was paid; use --credits to say what that is worth",
            plan.key(),
            expected.to_human(plan.token_decimals),
            found.to_human(plan.token_decimals),
            symbol = plan.token_symbol,
        )),
        fault => Failure::Failed(format!("the transaction does not pay plan {}: {fault}", plan.key())),
    }
}

fn unconfirmed(depth: Depth) -> Failure {
    let Depth { confirmations, required } = depth;
    Failure::Failed(format!("the payment has {confirmations} of {required} confirmations; try again later"))
}
