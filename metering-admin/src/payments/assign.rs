//! Credits an unclaimed payment to an account on an operator's decision.

use metering_core::access::{Account, AccountId};
use metering_core::chains::{TxHash, TxRef};
use metering_core::clock::Timestamp;
use metering_core::money::{Credits, LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::payments::{ExchangeRates, Payment, PaymentRecord, PaymentUse, Plan, PlanKey, Quote, SoldPlan};
use metering_core::store::{PaymentCredit, PaymentCredited, PaymentStore, QuotePrecedence, Store};

use crate::payments::chain::ReadableChain;
use crate::payments::error::AssignError;
use crate::payments::evidence;
use crate::payments::reason::Reason;
use crate::payments::token::Token;

/// A payment, and the account that an operator assigns it to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The transaction, on the chain that [`assign`] is given.
    pub tx: TxHash,
    /// The account.
    pub account: AccountId,
    /// The value of the payment.
    pub worth: Worth,
    /// Why it is assigned, for the ledger.
    pub reason: Option<Reason>,
    /// Whether to assign it even if an open quote is waiting for it. The quote can then no longer be claimed with it.
    pub despite_quote: bool,
}

/// The value of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Worth {
    /// The plan of the chain with this id, on sale or not, and its bonus. The payment must go to the plan's recipient, in
    /// its token, and cover its price.
    Plan(String),
    /// This many credits, above zero, regardless of the amount paid.
    Credits(Credits),
}

/// The outcome of [`assign`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assigned {
    /// The payment was credited.
    Credited(Box<AssignmentCredited>),
    /// The account already has the payment; nothing was credited. The account's current state, and the payment's
    /// record.
    AlreadyCredited(Box<Account>, Box<PaymentRecord>),
}

/// A payment that was credited to an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignmentCredited {
    /// The account after it.
    pub account: Account,
    /// The payment.
    pub payment: Payment,
    /// The amount paid, for people: `5 USDC`.
    pub paid: String,
    /// The plan, if that is what it is worth.
    pub plan_id: Option<String>,
    /// The credits.
    pub amount: Credits,
    /// Another buyer's open quote that was waiting for the payment.
    pub quote: Option<Quote>,
}

impl Assigned {
    /// The account.
    #[must_use]
    pub const fn account(&self) -> &Account {
        match self {
            Self::Credited(credited) => &credited.account,
            Self::AlreadyCredited(account, _) => account,
        }
    }
}

/// Credits the payment in a transaction to an account. Assigning it to the same account again changes nothing.
///
/// The transaction must have succeeded, have the confirmations that the chain requires, and contain one payment to
/// where plans of the chain are paid. The wallet is not linked to the account. Nothing proves that the account's owner
/// sent the payment: the operator has to make sure of that.
///
/// With the chain of the example `sell_a_plan`:
///
/// ```
/// use metering_admin::payments::{Assigned, Assignment, ReadableChain, Worth, assign};
/// use metering_core::{Clock, PaymentStore, SystemClock};
/// use metering_sqlite::SqliteStore;
/// # use metering_core::Service;
/// # mod in_memory {
/// #     include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../metering-core/examples/sell_a_plan/in_memory.rs"));
/// # }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = std::sync::Arc::new(SqliteStore::in_memory()?);
/// # let (reader, payer) = (in_memory::MemoryChain::default(), in_memory::Wallet::of(7).address());
/// # let listed = reader.listed();
/// # store.put_plans(vec![serde_json::from_str(
/// #     r#"{"id": "starter", "chain_id": 8453, "token_symbol": "USDC", "payment_kind": "erc20", "credits": 10,
/// #         "token_amount": "5", "token_contract": "0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0",
/// #         "token_decimals": 6, "label": "Starter"}"#,
/// # )?]).await?;
/// # let service = Service::with_defaults(std::sync::Arc::clone(&store) as _);
/// # let account = service.open_account("my-agent", "0".parse()?).await?.0.id;
/// let tx = reader.pay(payer, listed.recipient, "4750000".parse()?); // less than the plan costs
/// let worth = Worth::Credits("9.5".parse()?);
/// let assignment = Assignment { tx, account, worth, reason: Some("Ticket 311".parse()?), despite_quote: false };
/// let chain = ReadableChain { name: "base", chain: &listed, reader: &reader };
/// let assigned = assign(&*store, chain, &assignment, SystemClock.now()).await?;
/// assert_eq!(assigned.account().totals.balance.to_string(), "9.5");
/// let again = assign(&*store, chain, &assignment, SystemClock.now()).await?;
/// assert!(matches!(again, Assigned::AlreadyCredited(..)));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The first problem found; see [`AssignError`].
pub async fn assign(
    store: &dyn PaymentStore,
    chain: ReadableChain<'_>,
    assignment: &Assignment,
    now: Timestamp,
) -> Result<Assigned, AssignError> {
    Ready::read(store, chain, assignment, None, now).await?.credit(store).await
}

/// An assignment after the chain was read.
pub(super) enum Ready {
    /// The account already has the payment.
    Credited(Assigned),
    /// The payment can be credited.
    Payment {
        credit: Box<PaymentCredit>,
        /// The amount paid, for people.
        paid: String,
    },
}

impl Ready {
    pub(super) async fn read(
        store: &dyn PaymentStore,
        chain: ReadableChain<'_>,
        assignment: &Assignment,
        rates: Option<&ExchangeRates>,
        now: Timestamp,
    ) -> Result<Self, AssignError> {
        let plans = store.plans().await?;
        let plan = assignment.plan(chain.id(), &plans)?;
        let amount = assignment.amount(plan)?;
        let account = unrevoked(store, &assignment.account).await?;
        let tx = TxRef { chain_id: chain.id(), hash: assignment.tx };
        if let Some(record) = store.payment(&tx).await? {
            return already_credited(account, record).map(Self::Credited);
        }
        let payment = evidence::payment(store, chain, tx, &plans, plan).await?;
        let token = Token::of(&plans, &payment.target());
        let paid = token.amount(payment.amount).to_string();
        let value = rates.map(|rates| rates.value(payment.amount, token.facts(), now));
        let credit = PaymentCredit { value, ..assignment.credit(plan, payment, amount, now) };
        Ok(Self::Payment { credit: Box::new(credit), paid })
    }

    pub(super) async fn credit(&self, store: &dyn PaymentStore) -> Result<Assigned, AssignError> {
        let (credit, paid) = match self {
            Self::Credited(assigned) => return Ok(assigned.clone()),
            Self::Payment { credit, paid } => (&**credit, paid),
        };
        let PaymentCredit { account: id, payment, .. } = credit;
        let (amount, quote) = (credit.entry.amount, quote_set_aside(store, credit).await?);
        match store.credit_payment(credit.clone()).await? {
            PaymentCredited::Account(account) => {
                let plan_id = credit.entry.payment.as_ref().and_then(|payment| payment.plan_id.clone());
                let (payment, paid) = (payment.clone(), paid.clone());
                let credited = AssignmentCredited { account, payment, paid, plan_id, amount, quote };
                Ok(Assigned::Credited(Box::new(credited)))
            }
            PaymentCredited::Repeated(account, record) => already_credited(account, *record),
            // The transaction was used after it was looked up here.
            PaymentCredited::TxUsed => {
                Err(AssignError::Used { tx: payment.tx, record: store.payment(&payment.tx).await?.map(Box::new) })
            }
            PaymentCredited::BelongsToQuote => Err(match store.quote_paid_by(payment).await? {
                Some(Quote { top_up: Some(account), .. }) => AssignError::TopUpQuoted(account),
                quote => AssignError::Quoted(quote.map(|quote| quote.agent_name)),
            }),
            PaymentCredited::NoSuchAccount => Err(match unrevoked(store, id).await {
                Err(error) => error,
                Ok(account) => AssignError::NoSuchAccount(account.id),
            }),
            PaymentCredited::OutOfRange => Err(AssignError::OutOfRange { account: id.clone(), amount }),
        }
    }
}

/// Another buyer's open quote that an assignment takes the payment from.
async fn quote_set_aside(store: &dyn PaymentStore, credit: &PaymentCredit) -> Result<Option<Quote>, AssignError> {
    if credit.quotes == QuotePrecedence::Quote {
        return Ok(None);
    }
    let quote = store.quote_paid_by(&credit.payment).await?;
    Ok(quote.filter(|quote| quote.top_up.as_ref() != Some(&credit.account)))
}

/// The account of that id, if it may get credits.
async fn unrevoked(store: &(impl Store + ?Sized), id: &AccountId) -> Result<Account, AssignError> {
    match store.account(id).await? {
        None => Err(AssignError::NoSuchAccount(id.clone())),
        Some(Account { revoked_at: Some(at), .. }) => Err(AssignError::Revoked { account: id.clone(), at }),
        Some(account) => Ok(account),
    }
}

/// The outcome for a transaction that has a record. It is an error if another account has it, or if it paid for a
/// signup.
fn already_credited(account: Account, record: PaymentRecord) -> Result<Assigned, AssignError> {
    if record.account != account.id || record.used_as == PaymentUse::PaySignup {
        return Err(AssignError::Used { tx: record.payment.tx, record: Some(Box::new(record)) });
    }
    Ok(Assigned::AlreadyCredited(Box::new(account), Box::new(record)))
}

impl Assignment {
    /// The request as JSON, for the audit log.
    pub(super) fn described(&self) -> String {
        let worth = match &self.worth {
            Worth::Plan(id) => ("plan_id", serde_json::Value::from(id.as_str())),
            Worth::Credits(credits) => ("credits", credits.to_string().into()),
        };
        let fields =
            [("account", self.account.to_string().into()), worth, ("despite_quote", self.despite_quote.into())];
        let object: serde_json::Map<_, _> = fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
        serde_json::Value::Object(object).to_string()
    }

    fn plan<'a>(&self, chain_id: u64, plans: &'a [Plan]) -> Result<Option<&'a Plan>, AssignError> {
        let Worth::Plan(id) = &self.worth else { return Ok(None) };
        let key = PlanKey { id: id.clone(), chain_id };
        plans.iter().find(|plan| plan.key() == key).map(Some).ok_or(AssignError::NoSuchPlan(key))
    }

    fn amount(&self, plan: Option<&Plan>) -> Result<Credits, AssignError> {
        match (&self.worth, plan) {
            (Worth::Credits(credits), _) if !credits.is_positive() => Err(AssignError::NotPositive),
            (Worth::Credits(credits), _) => Ok(*credits),
            (Worth::Plan(_), plan) => plan.and_then(Plan::credits_in_all).ok_or(AssignError::PlanOutOfRange),
        }
    }

    fn credit(&self, plan: Option<&Plan>, payment: Payment, amount: Credits, now: Timestamp) -> PaymentCredit {
        let what = plan.map_or_else(|| "Payment".to_owned(), |plan| format!("Plan {},", plan.id));
        let why = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        PaymentCredit {
            account: self.account.clone(),
            used_as: PaymentUse::Assigned,
            entry: NewLedgerEntry {
                kind: LedgerKind::PurchaseTopup,
                amount,
                description: format!("{what} assigned by the operator{why}"),
                payment: Some(PaymentRef { tx: payment.tx, plan_id: plan.map(|plan| plan.id.clone()) }),
            },
            payment,
            sold: plan.map(|plan| SoldPlan::of(plan, plan.bonus_credits)),
            value: None,
            link_payer: false,
            quotes: if self.despite_quote { QuotePrecedence::Account } else { QuotePrecedence::Quote },
            now,
        }
    }
}
