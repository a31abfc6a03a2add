//! `metering signup-pay`: creates an account by paying for a plan from a wallet.

use std::io::Write;

use clap::Args;
use metering_core::access::AgentName;
use metering_core::chains::{Address, TxHash};
use metering_evm::Wallet;

use crate::client::access::rotate::owns_key;
use crate::client::payments::payment::abandon::abandon;
use crate::client::payments::payment::arguments::PaymentArgs;
use crate::client::payments::payment::claiming::{ClaimContext, claim};
use crate::client::payments::payment::connection::{ChainConnection, TxState};
use crate::client::payments::payment::entry::{Entry, Payment, Purpose, Signup};
use crate::client::payments::payment::journal::{Journal, Pending};
use crate::client::payments::payment::offered::{QuoteRequest, write_quote};
use crate::client::payments::payment::paid::CurrentAccount;
use crate::client::payments::payment::sending;
use crate::client::session::{ProfileArgs, Session};
use crate::failure::Failure;
use crate::output::{Format, notice};

/// Get an account by paying for a plan from a wallet.
///
/// A payment is never sent twice: after an interruption, run the command again to continue where it stopped.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering signup-pay --plan starter --agent-name my-agent
  metering signup-pay --plan starter --chain 8453 --agent-name my-agent --keystore wallet.json --yes

Paying from a wallet whose key is not on this machine:
  metering signup-pay --plan starter --agent-name my-agent --quote-only --payer 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed
  metering signup-pay --tx 0x4fb186eac8671be3d580252b09eb620e95140339cb5051905932dad888d5dd54")]
pub(crate) struct SignupPayArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    payment: PaymentArgs,
    /// The account's name: 1 to 64 letters, digits, hyphens or underscores.
    #[arg(long, value_name = "NAME")]
    agent_name: Option<AgentName>,
    /// The owner's email address; optional.
    #[arg(long, value_name = "EMAIL")]
    email: Option<String>,
    /// Print the quote and save it, to be paid from another wallet.
    #[arg(long, conflicts_with_all = ["tx", "abandon"])]
    quote_only: bool,
    /// The address of the wallet that will pay.
    #[arg(long, value_name = "ADDRESS", requires = "quote_only")]
    payer: Option<Address>,
    /// Claim the account with this transaction, in which another wallet paid the quote.
    #[arg(long, value_name = "HASH", conflicts_with = "abandon")]
    tx: Option<TxHash>,
    /// Replace the profile's current key, which is then lost.
    #[arg(long)]
    replace_key: bool,
    #[command(flatten)]
    format: Format,
}

impl SignupPayArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut session = self.profile.open()?;
        let (journal, entry) = Journal::open(&session.profile)?;
        if self.payment.abandon {
            return abandon(journal, entry, &self.payment, self.format.json, out).await;
        }
        let (journal, entry) = self.drop_stale(journal, entry, &session)?;
        let (mut pending, wallet) = match entry {
            Some(entry) => {
                if let Some(hash) = self.has_key_already(&session, &entry).await? {
                    let current = CurrentAccount::fetch(&session).await?;
                    let account = current.account(&session, "approved").paid_by(&entry.bill, hash);
                    account.write(out, self.format.json, "The profile already has the account's key.")?;
                    out.flush()?;
                    return journal.resume(entry).finish();
                }
                (self.resume(journal, entry, &session).await?, None)
            }
            None => {
                let started = self.begin(journal, &session).await?;
                session.remember_service()?;
                started
            }
        };
        if self.quote_only {
            return write_quote(pending.entry(), self.format.json, out);
        }
        let connection = sending::pay(&mut pending, &self.payment, wallet.as_ref()).await?;
        let context = ClaimContext { session: &mut session, args: &self.payment, wallet, json: self.format.json };
        claim(pending, connection.as_ref(), context, out).await
    }

    /// Drops an entry that is certainly unpaid and cannot be used: an expired quote, or one for something else.
    fn drop_stale(
        &self,
        journal: Journal,
        entry: Option<Entry>,
        session: &Session,
    ) -> Result<(Journal, Option<Entry>), Failure> {
        let Some(entry) = entry else { return Ok((journal, None)) };
        let over = entry.signup().is_none_or(|signup| signup.expires_at.is_over());
        if entry.is_certainly_unpaid() {
            let usable =
                self.tx.is_some() || (!self.quote_only && !over && self.check_matches(&entry, session).is_ok());
            return Ok((journal, Some(entry).filter(|_| usable)));
        }
        // It may have been paid late, so it is kept for a late claim.
        if self.quote_only && over && matches!(entry.payment, Payment::Unpaid) {
            let (journal, file) = journal.resume(entry).set_aside("expired")?;
            notice(&format!("The pending quote has expired; a record is kept in {}.", file.display()));
            return Ok((journal, None));
        }
        Ok((journal, Some(entry)))
    }

    fn check_matches(&self, entry: &Entry, session: &Session) -> Result<(), Failure> {
        let Some(signup) = entry.signup() else { return Err(entry.conflict()) };
        let same = self.agent_name.as_ref().is_none_or(|name| *name == signup.agent_name)
            && (self.email.is_none() || self.email == signup.email)
            && self.payer.is_none_or(|payer| payer == entry.payer)
            && entry.service == session.url().to_string();
        if !same {
            return Err(entry.conflict());
        }
        entry.check_matches(self.payment.plan.as_deref(), self.payment.chain.as_deref())
    }

    /// The transaction, if an earlier run finished everything except the journal. Leaves another account's key alone.
    async fn has_key_already(&self, session: &Session, entry: &Entry) -> Result<Option<TxHash>, Failure> {
        let Some(signup) = entry.signup() else { return Ok(None) };
        if session.profile.settings.api_key.is_none() {
            return Ok(None);
        }
        if let Some(hash) = entry.payment.hash()
            && owns_key(session, entry.payer).await? == Some(true)
        {
            return Ok(Some(hash));
        }
        self.may_replace_key(session, signup.replaces_key)?;
        Ok(None)
    }

    fn may_replace_key(&self, session: &Session, agreed: bool) -> Result<(), Failure> {
        if agreed || self.replace_key || session.profile.settings.api_key.is_none() {
            return Ok(());
        }
        Err(Failure::Conflict(format!(
            "profile {} already has a key: to buy credits for its account, use `metering topup`; for another account \
            choose another profile with --profile, or add --replace-key",
            session.profile.name()
        )))
    }

    async fn resume(&self, journal: Journal, entry: Entry, session: &Session) -> Result<Pending, Failure> {
        self.check_matches(&entry, session)?;
        let elsewhere = entry.signup().is_some_and(|signup| signup.paid_elsewhere);
        if self.quote_only {
            let open = elsewhere && matches!(entry.payment, Payment::Unpaid);
            return if open { Ok(journal.resume(entry)) } else { Err(entry.conflict()) };
        }
        let Some(hash) = self.tx.filter(|hash| entry.payment.hash() != Some(*hash)) else {
            if elsewhere && matches!(entry.payment, Payment::Unpaid) {
                return Err(Failure::Usage(format!(
                    "a quote is waiting for another wallet's payment: {entry}; claim it with \
                    `metering signup-pay --tx HASH`, or drop it with `metering signup-pay --abandon`"
                )));
            }
            return Ok(journal.resume(entry));
        };
        if let Some(signed) = entry.payment.signed() {
            let connection =
                ChainConnection::required(ChainConnection::open(&entry.bill, self.payment.rpc_url()?)?, &entry.bill)?;
            if !matches!(connection.state(signed).await?, TxState::Dead(_)) {
                return Err(entry.conflict());
            }
        }
        let mut pending = journal.resume(entry);
        pending.advance(Payment::Elsewhere(hash))?;
        Ok(pending)
    }

    async fn begin(&self, journal: Journal, session: &Session) -> Result<(Pending, Option<Wallet>), Failure> {
        if self.tx.is_some() {
            return Err(Failure::NotFound(
                "no quote is pending that this payment could claim; get one first with \
                `metering signup-pay --quote-only`"
                    .to_owned(),
            ));
        }
        let missing = |what: &str| Failure::Usage(format!("{what}; there is no pending payment to continue"));
        let plan = self.payment.plan.as_deref().ok_or_else(|| missing("name the plan with --plan"))?;
        let agent_name = self.agent_name.as_ref().ok_or_else(|| missing("name the account with --agent-name"))?;
        self.may_replace_key(session, false)?;
        if !self.quote_only {
            self.payment.consent().can_be_given()?;
        }
        let wallet = if self.payer.is_some() { None } else { Some(self.payment.wallet.open()?) };
        let payer = self.payer.or_else(|| wallet.as_ref().map(Wallet::address));
        let payer = payer.ok_or_else(|| missing("name the wallet with --payer"))?;
        let wanted = QuoteRequest {
            plan,
            chain: self.payment.chain.as_deref(),
            payer,
            agent_name,
            email: self.email.as_deref(),
        };
        let (bill, quote) = wanted.quote(&session.anonymous()).await?;
        let signup = Signup {
            agent_name: agent_name.clone(),
            email: self.email.clone(),
            signup_nonce: quote.signup_nonce,
            expires_at: quote.expires_at,
            terms_url: quote.terms_url,
            replaces_key: self.replace_key,
            paid_elsewhere: self.quote_only,
        };
        let purpose = Purpose::Signup(signup);
        let entry = Entry { service: session.url().to_string(), purpose, bill, payer, payment: Payment::Unpaid };
        Ok((journal.begin(entry)?, wallet))
    }
}
