//! The name of a record in messages.

use metering_core::offers::AuthorizationId;
use metering_core::usage::DailyTotal;

use super::Record;
use crate::transfer::record::{LedgerRecord, VolumeRecord};

impl Record {
    /// A short description for messages, without secrets.
    #[must_use]
    pub fn subject(&self) -> String {
        match self {
            Self::Account(record) => format!("account {}", record.account.id),
            Self::Ledger(LedgerRecord { entry, .. }) => format!("ledger entry {} of {}", entry.id, entry.account),
            Self::Usage(DailyTotal { account, day, line, key, .. }) => {
                format!(
                    "usage of {account} on {day}, {} {} ({}), key {}",
                    line.http_method,
                    line.route_template,
                    line.source.as_str(),
                    key.get()
                )
            }
            Self::Activity(record) => {
                format!("activity of {} at {}, {} before the last", record.account, record.created_at, record.newer)
            }
            Self::Idempotency(record) => {
                format!("outcome of request {} of {}", record.request.as_str(), record.account)
            }
            Self::Hold(hold) => format!("hold {} of {}", hold.id, hold.account),
            Self::Volume(VolumeRecord { account, route, volume }) => {
                format!("requests of {account} to {} {} in {}", route.http_method, route.route_template, volume.month)
            }
            Self::Refill(_) => "rule for recurring credits".to_owned(),
            Self::Plan(plan) => format!("plan {}", plan.key()),
            Self::Payment(record) => format!("payment {}", record.payment.tx),
            Self::Reversal(reversal) => {
                format!("reversal {} at {}", reversal.reference.id(), reversal.reference.processor())
            }
            Self::ReceiptTerms(record) => format!("receipt terms {}", record.number),
            Self::IssuedReceipt(issued) => format!("receipt of payment {}, part {}", issued.tx, issued.part),
            Self::Buyer(record) => format!("buyer of {} since {}", record.account, record.since),
            Self::AutoTopUp(settings) => format!("saved card of {}", settings.account),
            Self::TopUpCharge(charge) => format!("automatic top-up {} of {}", charge.id, charge.account),
            Self::Authorization(record) => {
                let AuthorizationId { chain_id, payer, nonce, .. } = record.signed.id();
                format!("authorization {nonce} of {payer} on chain {chain_id}")
            }
            Self::GasPlaces(places) => format!("gas places of {} on chain {}", places.wallet, places.chain_id),
            Self::Quote(quote) => format!("quote {:?}", quote.nonce),
            Self::Link(link) => format!("link of {} to {}", link.wallet, link.account),
            Self::Challenge(challenge) => format!("challenge of {}", challenge.account),
            Self::ScanMark(mark) => format!("scan mark of chain {}", mark.chain_id),
            Self::Recipient(record) => format!("recipient {} on chain {}", record.recipient, record.chain_id),
            Self::Unreadable(arrival) => format!("unreadable arrival {}", arrival.location),
            Self::Unclaimed(payment) => format!("unclaimed payment {}", payment.arrival.tx),
            Self::Webhook(webhook) => format!("webhook {}", webhook.id),
            Self::Event(event) => format!("event {}", event.id()),
            Self::Delivery(record) => format!("delivery {} to {}", record.id.get(), record.webhook),
            Self::UsageSink(sink) => format!("usage sink {}", sink.name),
            Self::SentUsage(row) => format!("usage of {} on {} at sink {}", row.account, row.day, row.sink),
            Self::Signup(session) => format!("signup {:?}", session.token),
            Self::Solution(record) => format!("solution {record:?}"),
            Self::EmailLink(link) => format!("email link {:?} of {}", link.token, link.account),
            Self::BrowserSession(session) => format!("session {} of {}", session.id, session.account),
            Self::Member(member) => format!("member {} of {}", member.id, member.account),
            Self::Invitation(invitation) => format!("invitation {} of {}", invitation.id, invitation.account),
            Self::SignIn(proof) => format!("sign-in {:?}", proof.token),
            Self::AccountAction(action) => format!("log entry {} of {}", action.number, action.account),
            Self::Child(child) => format!("parent of {}", child.account),
            Self::Move(moved) => format!("credits moved between {} and {}", moved.parent, moved.child),
            Self::OAuthClient(client) => format!("OAuth client {}", client.id),
            Self::OAuthGrant(grant) => format!("OAuth grant {:?} of {}", grant.token, grant.account),
            Self::Operator(operator) => format!("operator {}", operator.name),
            Self::Price(version, _) => format!("price version {}", version.number),
            Self::AuditEntry(entry) => format!("audit entry {}", entry.id.0),
            Self::Key(record) => format!("key {} of {}", record.key.id, record.key.account),
            Self::Secret(record) => format!("secret {:?} of {}", record.hash, record.account),
        }
    }
}
