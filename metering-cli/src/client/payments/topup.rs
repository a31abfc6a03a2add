//! `metering topup`: buys credits for the profile's account from a wallet.

mod signed;

use std::io::Write;

use clap::Args;
use metering_core::chains::TxHash;

use crate::client::payments::payment::abandon::abandon;
use crate::client::payments::payment::arguments::PaymentArgs;
use crate::client::payments::payment::bill::Bill;
use crate::client::payments::payment::connection::ChainConnection;
use crate::client::payments::payment::crediting::{Claim, Crediting};
use crate::client::payments::payment::entry::{Entry, Payment, Purpose};
use crate::client::payments::payment::journal::{Journal, Pending};
use crate::client::payments::payment::market::Market;
use crate::client::payments::payment::registration::{Watched, is_final, refused};
use crate::client::payments::payment::sending;
use crate::client::payments::topup::signed::SignArgs;
use crate::client::session::{ProfileArgs, Session};
use crate::failure::Failure;
use crate::output::Format;

/// Pay for a plan, or register a payment already made, for the profile's account.
///
/// A payment is never sent twice: after an interruption, run the command again to continue where it stopped.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering topup --plan starter
  metering topup --plan starter --chain 8453 --keystore wallet.json --yes
  metering topup --plan starter --tx 0x4fb186eac8671be3d580252b09eb620e95140339cb5051905932dad888d5dd54
  metering topup --abandon
  metering topup --sign --amount 0.5")]
pub(crate) struct TopupArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    payment: PaymentArgs,
    /// Register this payment, which was already made; nothing is paid.
    #[arg(long, value_name = "HASH", conflicts_with = "abandon")]
    tx: Option<TxHash>,
    /// The payer's signature of the text that the command printed.
    #[arg(long, value_name = "HEX", conflicts_with = "abandon")]
    signature: Option<String>,
    #[command(flatten)]
    by_signature: SignArgs,
    #[command(flatten)]
    format: Format,
}

impl TopupArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let session = self.profile.open()?;
        if self.by_signature.sign {
            let (consent, wallet) = (self.payment.consent(), &self.payment.wallet);
            return self.by_signature.run(&session, consent, wallet, self.format.json, out).await;
        }
        let (journal, entry) = Journal::open(&session.profile)?;
        if self.payment.abandon {
            return abandon(journal, entry, &self.payment, self.format.json, out).await;
        }
        let mut crediting =
            Crediting::of_key(&session, &self.payment, self.signature.clone(), self.format.json).await?;
        // Start over if certainly nothing was paid, because prices may have changed.
        let entry = entry.filter(|entry| !entry.is_certainly_unpaid());
        // Registering sends no payment, so another pending payment does not matter.
        let other = entry.as_ref().is_none_or(|entry| entry.payment.hash() != self.tx);
        if let Some(hash) = self.tx.filter(|_| other) {
            return self.register_elsewhere(&mut crediting, hash, out).await;
        }
        let mut pending = match entry {
            Some(entry) => {
                self.check_matches(&entry, &session, crediting.org_id())?;
                journal.resume(entry)
            }
            None => self.begin(journal, &session, &mut crediting).await?,
        };
        let connection = sending::pay(&mut pending, &self.payment, crediting.wallet()).await?;
        self.register(pending, connection.as_ref(), &mut crediting, out).await
    }

    fn check_matches(&self, entry: &Entry, session: &Session, org_id: &str) -> Result<(), Failure> {
        let Purpose::Topup { org_id: pending } = &entry.purpose else { return Err(entry.conflict()) };
        // Compare accounts: a service may have several URLs.
        if pending != org_id {
            return Err(Failure::Conflict(format!(
                "a payment for account {pending} at {} is pending, but this is account {org_id} at {}: {entry}; \
                continue it there, or drop it with `metering topup --abandon`",
                entry.service,
                session.url()
            )));
        }
        entry.check_matches(self.payment.plan.as_deref(), self.payment.chain.as_deref())
    }

    async fn begin(
        &self,
        journal: Journal,
        session: &Session,
        crediting: &mut Crediting<'_>,
    ) -> Result<Pending, Failure> {
        if self.signature.is_some() {
            let problem = "--signature belongs to a payment that was already made: name it with --tx";
            return Err(Failure::Usage(problem.to_owned()));
        }
        let plan = self.plan()?;
        self.payment.consent().can_be_given()?;
        let market = Market::fetch(&session.anonymous()).await?;
        let bill = Bill::of_plan(&market, market.offer(plan, self.payment.chain.as_deref())?)?;
        ChainConnection::required(ChainConnection::open(&bill, self.payment.rpc_url()?)?, &bill)?;
        let payer = crediting.open_wallet()?.address();
        let purpose = Purpose::Topup { org_id: crediting.org_id().to_owned() };
        journal.begin(Entry { service: session.url().to_string(), purpose, bill, payer, payment: Payment::Unpaid })
    }

    fn plan(&self) -> Result<&str, Failure> {
        let problem = "name the plan with --plan; `metering plans` lists all plans";
        self.payment.plan.as_deref().ok_or_else(|| Failure::Usage(problem.to_owned()))
    }

    /// Registers the pending payment. Its entry is then finished, set aside or kept for another run.
    async fn register(
        &self,
        pending: Pending,
        connection: Option<&ChainConnection>,
        crediting: &mut Crediting<'_>,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let entry = pending.entry();
        let Some(hash) = entry.payment.hash() else { return Err(entry.conflict()) };
        let watched = Some(Watched { entry, connection });
        let claim = Claim { plan_id: &entry.bill.plan_id, chain_id: entry.bill.chain_id, hash, watched };
        match crediting.register(claim, out).await? {
            Ok(credited) => {
                // Print before removing the entry: a user who did not see the output runs the command again, which must
                // find this payment and not start another.
                credited.write(out, self.format.json)?;
                out.flush()?;
                pending.finish()
            }
            Err(refusal) if is_final(&refusal) => {
                let (_journal, file) = pending.set_aside(&refusal.code)?;
                Err(refused(&refusal, &format!("A record of the payment is kept in {}.", file.display())))
            }
            Err(refusal) => Err(refused(&refusal, "The payment is kept: fix this, then run `metering topup` again.")),
        }
    }

    async fn register_elsewhere(
        &self,
        crediting: &mut Crediting<'_>,
        hash: TxHash,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let market = Market::fetch(crediting.client()).await?;
        let offer = market.offer(self.plan()?, self.payment.chain.as_deref())?;
        let claim = Claim { plan_id: &offer.id, chain_id: offer.chain_id, hash, watched: None };
        match crediting.register(claim, out).await? {
            Ok(credited) => credited.write(out, self.format.json),
            Err(refusal) => Err(refused(&refusal, "")),
        }
    }
}
