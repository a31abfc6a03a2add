//! From a bill to a transaction that was sent, each step written down before the next.

use std::fmt::Display;
use std::io;

use metering_core::Address;
use metering_evm::{SignedPayment, Wallet};

use crate::client::payment::arguments::PaymentArgs;
use crate::client::payment::entry::{Entry, Payment};
use crate::client::payment::journal::Pending;
use crate::client::payment::till::{Death, Fate, Till};
use crate::failure::Failure;
use crate::output::notice;
use crate::table::write_pairs;

/// Brings the payment to where it was sent, from wherever it stands. Returns the way to the chain, which a payment that
/// was sent before may lack.
pub(crate) async fn pay(
    pending: &mut Pending,
    args: &PaymentArgs,
    wallet: Option<&Wallet>,
) -> Result<Option<Till>, Failure> {
    let bill = &pending.entry().bill;
    let till = Till::open(bill, args.rpc_url()?)?;
    match pending.entry().payment.clone() {
        Payment::Sent(_) | Payment::Elsewhere(_) => Ok(till),
        Payment::Signed(signed) => {
            let till = Till::required(till, bill)?;
            resend(pending, &till, signed).await?;
            Ok(Some(till))
        }
        Payment::Unpaid => {
            let till = Till::required(till, bill)?;
            let opened = if wallet.is_none() { Some(args.wallet.open()?) } else { None };
            let wallet = wallet.or(opened.as_ref()).expect("one of the two is there");
            is_payer(pending.entry(), wallet.address())?;
            let signed = till.sign(wallet, bill).await?;
            show(pending.entry(), &signed);
            args.consent().ask("Pay this?").await?;
            if pending.entry().signup().is_some_and(|signup| signup.expires_at.is_over()) {
                let problem = "the quote expired before anything was paid; run the command again for a new one";
                return Err(Failure::TryLater(problem.to_owned()));
            }
            pending.advance(Payment::Signed(signed.clone()))?;
            send(pending, &till, signed).await?;
            Ok(Some(till))
        }
    }
}

/// Goes on where the payment may have been sent or not.
async fn resend(pending: &mut Pending, till: &Till, signed: SignedPayment) -> Result<(), Failure> {
    match till.fate(&signed).await.map_err(|failure| kept(pending.entry(), &failure))? {
        Fate::Dead(death) => Err(dead(pending.entry(), death)),
        Fate::Alive => pending.advance(Payment::Sent(signed)),
        Fate::Unknown if pending.entry().signup().is_some_and(|signup| signup.expires_at.is_long_over()) => {
            Err(Failure::Conflict(format!(
                "the quote expired so long ago that its payment would not be honoured, and the chain knows nothing of \
                 transaction {}: `{} --abandon` forgets it",
                signed.hash,
                pending.entry().command()
            )))
        }
        Fate::Unknown => send(pending, till, signed).await,
    }
}

async fn send(pending: &mut Pending, till: &Till, signed: SignedPayment) -> Result<(), Failure> {
    if let Err(failure) = till.send(&signed).await {
        // Whatever the node says: what counts is what becomes of the transaction.
        let fate = till.fate(&signed).await;
        match fate {
            Ok(Fate::Alive) => {}
            Ok(Fate::Dead(death)) => return Err(dead(pending.entry(), death)),
            Ok(Fate::Unknown) | Err(_) => return Err(kept(pending.entry(), &failure)),
        }
    }
    notice(&format!("Sent transaction {}.", signed.hash));
    pending.advance(Payment::Sent(signed))
}

/// Refuses to pay from another wallet than the one that the payment was begun with.
fn is_payer(entry: &Entry, wallet: Address) -> Result<(), Failure> {
    if wallet == entry.payer {
        return Ok(());
    }
    Err(Failure::Conflict(format!(
        "a payment from {} is pending, and this is the wallet {}: use that one, or forget the payment by \
         `{} --abandon`",
        entry.payer.to_checksummed(),
        wallet.to_checksummed(),
        entry.command()
    )))
}

/// Shows what is about to be paid, on stderr.
fn show(entry: &Entry, signed: &SignedPayment) {
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
    // Nothing is left to tell when even stderr is closed.
    let _ = write_pairs(&mut io::stderr(), &pairs);
}

/// What went wrong, with what to do about a payment that may have been sent.
fn kept(entry: &Entry, failure: &Failure) -> Failure {
    let why = failure.to_string();
    Failure::TryLater(format!(
        "{} The payment is signed and kept, and no other will be made: run `{}` again to go on.",
        sentence(&why),
        entry.command()
    ))
}

/// With a full stop.
pub(crate) fn sentence(text: &str) -> String {
    format!("{}.", text.trim_end_matches('.'))
}

/// What to do about a payment that came to nothing.
pub(crate) fn dead(entry: &Entry, death: Death) -> Failure {
    let hash = entry.payment.hash().map(|hash| hash.to_string()).unwrap_or_default();
    let command = entry.command();
    Failure::Conflict(match death {
        Death::Failed => format!(
            "transaction {hash} failed on the chain, so nothing was paid but its fee (does the wallet have {} {}?): \
             `{command} --abandon` forgets it, then pay anew",
            entry.bill.human(),
            entry.bill.token_symbol
        ),
        Death::Replaced => format!(
            "another transaction of the wallet took the place of {hash}, which will never be mined: if that one paid \
             the same, go on by `{command} --tx HASH`; if not, `{command} --abandon` forgets this one, then pay anew"
        ),
    })
}
