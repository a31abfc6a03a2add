//! Signs and sends the payment of a bill; each step is recorded before the next.

use std::fmt::Display;
use std::io;

use metering_core::chains::Address;
use metering_evm::{SignedPayment, Wallet};

use crate::client::payments::payment::arguments::PaymentArgs;
use crate::client::payments::payment::connection::{ChainConnection, TxFailure, TxState};
use crate::client::payments::payment::entry::{Entry, Payment};
use crate::client::payments::payment::journal::Pending;
use crate::failure::Failure;
use crate::output::notice;
use crate::table::write_pairs;

/// Continues the payment from its current state until it is sent. Returns the connection to the chain, which may be
/// missing if the payment was sent before.
pub(crate) async fn pay(
    pending: &mut Pending,
    args: &PaymentArgs,
    wallet: Option<&Wallet>,
) -> Result<Option<ChainConnection>, Failure> {
    let bill = &pending.entry().bill;
    let connection = ChainConnection::open(bill, args.rpc_url()?)?;
    match pending.entry().payment.clone() {
        Payment::Sent(_) | Payment::Elsewhere(_) => Ok(connection),
        Payment::Signed(signed) => {
            let connection = ChainConnection::required(connection, bill)?;
            resend(pending, &connection, signed).await?;
            Ok(Some(connection))
        }
        Payment::Unpaid => {
            let connection = ChainConnection::required(connection, bill)?;
            let opened = if wallet.is_none() { Some(args.wallet.open()?) } else { None };
            let wallet = wallet.or(opened.as_ref()).expect("one of the two is set");
            is_payer(pending.entry(), wallet.address())?;
            let signed = connection.sign(wallet, bill).await?;
            show_payment(pending.entry(), &signed);
            args.consent().ask("Pay this?").await?;
            if pending.entry().signup().is_some_and(|signup| signup.expires_at.is_over()) {
                let problem = "the quote expired before anything was paid; run the command again for a new one";
                return Err(Failure::TryLater(problem.to_owned()));
            }
            pending.advance(Payment::Signed(signed.clone()))?;
            send(pending, &connection, signed).await?;
            Ok(Some(connection))
        }
    }
}

/// Continues a payment that may or may not have been sent.
async fn resend(pending: &mut Pending, connection: &ChainConnection, signed: SignedPayment) -> Result<(), Failure> {
    match connection.state(&signed).await.map_err(|failure| maybe_sent(pending.entry(), &failure))? {
        TxState::Dead(failure) => Err(failed_payment(pending.entry(), failure)),
        TxState::Live => pending.advance(Payment::Sent(signed)),
        TxState::Unknown if pending.entry().signup().is_some_and(|signup| signup.expires_at.is_long_over()) => {
            Err(Failure::Conflict(format!(
                "the quote expired so long ago that a payment would not be honoured, and the chain does not know \
                transaction {}: drop it with `{} --abandon`",
                signed.hash,
                pending.entry().command()
            )))
        }
        TxState::Unknown => send(pending, connection, signed).await,
    }
}

async fn send(pending: &mut Pending, connection: &ChainConnection, signed: SignedPayment) -> Result<(), Failure> {
    if let Err(failure) = connection.send(&signed).await {
        // The node's error does not matter, only the transaction's state.
        let state = connection.state(&signed).await;
        match state {
            Ok(TxState::Live) => {}
            Ok(TxState::Dead(failure)) => return Err(failed_payment(pending.entry(), failure)),
            Ok(TxState::Unknown) | Err(_) => return Err(maybe_sent(pending.entry(), &failure)),
        }
    }
    notice(&format!("Sent transaction {}.", signed.hash));
    pending.advance(Payment::Sent(signed))
}

/// Refuses to pay from a wallet other than the one that the payment was started with.
fn is_payer(entry: &Entry, wallet: Address) -> Result<(), Failure> {
    if wallet == entry.payer {
        return Ok(());
    }
    Err(Failure::Conflict(format!(
        "a payment from {} is pending, but this is wallet {}: use the other one, or drop the payment with \
        `{} --abandon`",
        entry.payer.to_checksummed(),
        wallet.to_checksummed(),
        entry.command()
    )))
}

/// Shows what is about to be paid, on stderr.
fn show_payment(entry: &Entry, signed: &SignedPayment) {
    let bill = &entry.bill;
    let amount = format!("{} {}", bill.human(), bill.token_symbol);
    let (recipient, payer) = (bill.recipient.to_checksummed(), entry.payer.to_checksummed());
    let plan = format!("{}: {}", bill.plan_id, bill.sells);
    let fee = format!("at most {} of the chain's coin", signed.fee_max.to_human(18));
    let mut pairs: Vec<(&str, &dyn Display)> = vec![
        ("Plan", &plan),
        ("Amount", &amount),
        ("To", &recipient),
        ("From", &payer),
        ("Chain", &bill.chain_name),
        ("Fee", &fee),
    ];
    if let Some(signup) = entry.signup() {
        pairs.push(("Terms", &signup.terms_url));
    }
    // If stderr is closed too, there is nowhere left to report.
    let _ = write_pairs(&mut io::stderr(), &pairs);
}

/// The failure for a payment that may have been sent, and what to do about it.
fn maybe_sent(entry: &Entry, failure: &Failure) -> Failure {
    let why = failure.to_string();
    Failure::TryLater(format!(
        "{} The payment is signed and kept, and no other will be made: run `{}` again to continue.",
        sentence(&why),
        entry.command()
    ))
}

/// Ends a text with one full stop.
pub(crate) fn sentence(text: &str) -> String {
    format!("{}.", text.trim_end_matches('.'))
}

/// The failure for a payment that failed permanently, and what to do about it.
pub(crate) fn failed_payment(entry: &Entry, failure: TxFailure) -> Failure {
    let hash = entry.payment.hash().map(|hash| hash.to_string()).unwrap_or_default();
    let command = entry.command();
    Failure::Conflict(match failure {
        TxFailure::Failed => format!(
            "transaction {hash} failed on the chain, so only its fee was paid (does the wallet have {} {}?): drop it \
            with `{command} --abandon`, then pay again",
            entry.bill.human(),
            entry.bill.token_symbol
        ),
        TxFailure::Replaced => format!(
            "another transaction of the wallet replaced {hash}, which will never be mined: if that one paid the same, \
            continue with `{command} --tx HASH`; if not, drop this one with `{command} --abandon`, then pay again"
        ),
    })
}
