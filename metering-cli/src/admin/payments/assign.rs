//! `payments assign`: credits an unclaimed payment to an account.

mod checks;
mod outcome;

use std::io::Write;

use clap::Args;
use metering_core::chains::{TxHash, TxRef};
use metering_core::money::{DecimalError, LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::payments::{Payment, PaymentRecord, PaymentUse, Plan, PlanKey, SoldPlan};
use metering_core::store::{PaymentCredit, PaymentCredited, QuotePrecedence};
use metering_core::{AccountId, Credits, PaymentStore};

use self::outcome::Outcome;
use super::chains;
use super::status::use_of;
use super::token::Token;
use crate::admin::account::note;
use crate::admin::plan::no_plan;
use crate::admin::session::{Session, find, missing_or_revoked};
use crate::failure::Failure;
use crate::output::{Format, notice};

/// Assign an unclaimed payment to an account.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads the transaction from the chain. It must have succeeded, have the confirmations that the chain's section requires,
and contain one transfer to a recipient of the chain's plans in the token of such a plan. With --plan, the transfer must
go to that plan's recipient, in its token, and cover its price. If it is not clear what was paid, nothing is assigned;
use `metering admin account grant` instead.
A transaction can be credited only once. If it contains payments in two tokens, choose one with --plan, and grant
credits for the other.
The command does not ask the owner of the paying wallet: make sure that the account's owner sent the payment. The wallet
is not linked to the account. Assigning the payment to the same account again changes nothing.

Examples:
  metering admin payments assign --config /etc/metering.toml --chain base \
--tx 0x88df016429689c079f3b2f6ad39fa052532c56795b733da78a91ebe6a713944b --account org_0123456789abcdefghij --plan starter
  metering admin payments assign --config /etc/metering.toml --chain base \
--tx 0x88df016429689c079f3b2f6ad39fa052532c56795b733da78a91ebe6a713944b --account org_0123456789abcdefghij --credits 9.5 \
--reason \"Ticket 311: sent 4.75 USDC instead of 5\"")]
pub(crate) struct AssignArgs {
    /// The chain, by the name of its configuration section.
    #[arg(long, value_name = "NAME")]
    chain: String,
    /// The transaction's hash.
    #[arg(long, value_name = "HASH")]
    tx: TxHash,
    /// The account's id.
    #[arg(long, value_name = "ORG")]
    account: AccountId,
    #[command(flatten)]
    worth: Worth,
    /// The reason, for the ledger; the account's owner can read it.
    #[arg(long, value_name = "TEXT", value_parser = note)]
    reason: Option<String>,
    /// Assign it even if an open quote is waiting for it; the quote can then no longer be claimed with it.
    #[arg(long)]
    despite_quote: bool,
    #[command(flatten)]
    format: Format,
}

/// What the payment is worth.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Worth {
    /// The plan of this chain that was bought, on sale or not; its bonus is credited too.
    #[arg(long, value_name = "ID")]
    plan: Option<String>,
    /// The credits to add: above zero, with up to eight decimal places.
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    credits: Option<Credits>,
}

fn positive(text: &str) -> Result<Credits, String> {
    let credits: Credits = text.parse().map_err(|error: DecimalError| error.to_string())?;
    if credits.is_positive() { Ok(credits) } else { Err("must be above zero".to_owned()) }
}

impl AssignArgs {
    pub(crate) async fn run(self: Box<Self>, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let store = session.store().await?;
        let store = store.as_ref();
        let chain = chains::open_one(session.sources(), &self.chain).await?;
        let plans = store.plans().await?;
        let plan = self.plan(chain.chain.chain_id, &plans)?;
        let account = find(store, &self.account).await?;
        if account.revoked_at.is_some() {
            return Err(missing_or_revoked(store, &self.account).await);
        }
        let tx = TxRef { chain_id: chain.chain.chain_id, hash: self.tx };
        if let Some(record) = store.payment(&tx).await? {
            let outcome = Outcome::of_record(&account, &record).ok_or_else(|| used(&tx, &record))?;
            return outcome.write(out, self.format.json);
        }
        let payment = checks::payment(store, &chain, tx, &plans, plan).await?;
        let paid = Token::of(&plans, &payment.target()).amount(payment.amount).to_string();
        if self.despite_quote
            && let Some(quote) = store.quote_paid_by(&payment).await?
            && quote.top_up.as_ref() != Some(&self.account)
        {
            notice(&format!(
                "warning: the quote of {} is waiting for this payment, and can no longer be claimed with it",
                quote.agent_name
            ));
        }
        let credit = self.credit(session, plan, payment.clone())?;
        let amount = credit.entry.amount;
        match store.credit_payment(credit).await? {
            PaymentCredited::Account(account) => {
                let plan_id = plan.map(|plan| plan.id.as_str());
                Outcome::credited(&account, tx, plan_id, amount, &paid).write(out, self.format.json)
            }
            PaymentCredited::Repeated(account, record) => {
                let outcome = Outcome::of_record(&account, &record).ok_or_else(|| used(&tx, &record))?;
                outcome.write(out, self.format.json)
            }
            PaymentCredited::TxUsed => Err(taken(store, &tx).await),
            PaymentCredited::BelongsToQuote => Err(quoted(store, &payment).await),
            PaymentCredited::NoSuchAccount => Err(missing_or_revoked(store, &self.account).await),
            PaymentCredited::OutOfRange => Err(Failure::Failed(format!(
                "{amount} more credits would take the balance of {} out of range; nothing was assigned",
                self.account
            ))),
        }
    }

    fn plan<'a>(&self, chain_id: u64, plans: &'a [Plan]) -> Result<Option<&'a Plan>, Failure> {
        let Some(id) = &self.worth.plan else { return Ok(None) };
        let key = PlanKey { id: id.clone(), chain_id };
        plans.iter().find(|plan| plan.key() == key).map(Some).ok_or_else(|| no_plan(&key))
    }

    fn credit(&self, session: &Session, plan: Option<&Plan>, payment: Payment) -> Result<PaymentCredit, Failure> {
        let of_plan = || plan.and_then(Plan::credits_in_all);
        let amount = self.worth.credits.or_else(of_plan).ok_or_else(|| {
            // Cannot happen: plans are validated before they are stored.
            Failure::Failed("the plan's credits are more than a balance can hold".to_owned())
        })?;
        let what = plan.map_or_else(|| "Payment".to_owned(), |plan| format!("Plan {},", plan.id));
        let why = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let plan_id = plan.map(|plan| plan.id.clone());
        Ok(PaymentCredit {
            account: self.account.clone(),
            used_as: PaymentUse::Assigned,
            entry: NewLedgerEntry {
                kind: LedgerKind::PurchaseTopup,
                amount,
                description: format!("{what} assigned by the operator{why}"),
                payment: Some(PaymentRef { tx: payment.tx, plan_id }),
            },
            payment,
            sold: plan.map(|plan| SoldPlan::of(plan, plan.bonus_credits)),
            link_payer: false,
            quotes: if self.despite_quote { QuotePrecedence::Account } else { QuotePrecedence::Quote },
            now: session.now(),
        })
    }
}

fn used(tx: &TxRef, record: &PaymentRecord) -> Failure {
    Failure::Conflict(format!("transaction {tx} was used before: {}; nothing was assigned", use_of(record)))
}

/// The failure for a transaction that was used after this command looked it up.
async fn taken(store: &dyn PaymentStore, tx: &TxRef) -> Failure {
    match store.payment(tx).await {
        Ok(Some(record)) => used(tx, &record),
        Ok(None) => Failure::Conflict(format!("transaction {tx} was used before; nothing was assigned")),
        Err(error) => error.into(),
    }
}

async fn quoted(store: &dyn PaymentStore, payment: &Payment) -> Failure {
    let quote = match store.quote_paid_by(payment).await {
        Ok(quote) => quote,
        Err(error) => return error.into(),
    };
    if let Some(account) = quote.as_ref().and_then(|quote| quote.top_up.as_ref()) {
        return Failure::Conflict(format!(
            "a top-up quote of {account} is waiting for exactly this payment; assign it to that account, or add \
             --despite-quote"
        ));
    }
    let name = quote.map_or_else(|| "an unknown agent".to_owned(), |quote| quote.agent_name.to_string());
    Failure::Conflict(format!(
        "the quote of {name} is waiting for exactly this payment, and its owner can still claim it; to assign it \
         anyway, add --despite-quote"
    ))
}
