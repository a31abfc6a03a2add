//! What needs an operator's attention: unclaimed payments, unpaid usage, payments to refund, failing webhooks, and accounts
//! that run out of credits.

use std::cmp::Reverse;

use metering_core::access::{AccountId, AgentName};
use metering_core::chains::{Chain, TokenUnits};
use metering_core::clock::Timestamp;
use metering_core::events::{UsageSink, WebhookId, WebhookState};
use metering_core::money::Credits;
use metering_core::operators::{AccountRunway, Period};
use metering_core::payments::{Payment, Plan, UnclaimedPayment};
use metering_core::store::{Cursor, Page, StoreError};
use metering_core::usage::DayRange;
use metering_core::wire::WebhookDocument;

use crate::administration::Administration;
use crate::error::AdminError;
use crate::payments::{FoundPayment, PaymentStatus, Token};
use crate::wire::{
    ArrivalDocument, FailingSinkDocument, FailingWebhookDocument, NearestPlanDocument, PaidBeforeDocument,
    RevokedPaymentDocument, RunwayDocument, UnclaimedDocument, UnpaidUsageDocument,
};

/// How often failing deliveries are read for a page: several may go to one webhook.
const READS: usize = 10;
/// The first letter of a cursor of failing webhooks: whether the operator's own was listed before. It may have a failing
/// delivery for each account; every other webhook has one.
const WITH_OWN: char = 'o';
const WITHOUT_OWN: char = 'c';
/// The days of usage from which the burn rate is computed.
const DAYS: u32 = 7;
/// How many of a wallet's accounts are read, and how many entries and purchases of each.
const ACCOUNTS: usize = 3;
const ENTRIES: u32 = 100;
const PURCHASES: usize = 3;

impl Administration {
    /// All accounts that run out within a week at the pace of the last seven UTC days, today included, the first to run
    /// out first. [`runways_after`] makes pages of them.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn accounts_running_out(&self) -> Result<Vec<AccountRunway>, AdminError> {
        let days = DayRange::last_days(self.clock.now(), DAYS);
        Ok(self.store.accounts_running_out(days, u32::MAX).await?)
    }

    /// The webhooks whose next event waits because an attempt to deliver it failed, the one that fails longest first: at
    /// most `limit` after a cursor. Those that are switched off are left out, so a page may have fewer although more follow.
    ///
    /// # Errors
    /// When the store fails, or the cursor is of another list.
    pub async fn failing_webhooks(
        &self,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<FailingWebhookDocument>, AdminError> {
        let (mut has_own, mut next) = after.map(own_of_cursor).transpose()?.unwrap_or_default();
        let (mut failing, now) = (Vec::new(), self.clock.now());
        for _ in 0..READS {
            // No more than there is room for, so that the cursor is that of the last one.
            let room = limit.saturating_sub(u32::try_from(failing.len()).unwrap_or(u32::MAX));
            if room == 0 {
                break;
            }
            let page = self.store.failing_deliveries(next.as_ref(), room).await?;
            for delivery in page.items {
                let is_own = delivery.webhook == WebhookId::OPERATOR;
                if is_own && std::mem::replace(&mut has_own, true) {
                    continue;
                }
                let owner = delivery.event.account.as_ref().filter(|_| !is_own);
                let webhooks = self.store.webhooks(owner).await?;
                let webhook = webhooks.iter().find(|webhook| webhook.id == delivery.webhook);
                if let Some(webhook) = webhook.filter(|webhook| webhook.state == WebhookState::Active) {
                    failing.push(FailingWebhookDocument::new(WebhookDocument::new(webhook, now), owner, &delivery));
                }
            }
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        let own = if has_own { WITH_OWN } else { WITHOUT_OWN };
        Ok(Page { items: failing, next: next.map(|next| Cursor::new(format!("{own}{}", next.as_str()))) })
    }

    /// The newest payments for usage that failed although their requests were served, at most `limit`: those of accounts
    /// that still owe.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn unpaid_usage(&self, limit: u32) -> Result<Vec<UnpaidUsageDocument>, AdminError> {
        let mut unpaid = Vec::new();
        for record in self.store.unpaid_usage(limit).await? {
            let account = self.store.account(&record.account).await?;
            if account.is_some_and(|account| account.totals.balance.is_negative()) {
                unpaid.extend(UnpaidUsageDocument::new(&record));
            }
        }
        Ok(unpaid)
    }

    /// The newest payments that processors took for accounts that were revoked before, and that are not refunded, at most
    /// `limit`. Reads all payments of processors.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn payments_to_refund(&self, limit: u32) -> Result<Vec<RevokedPaymentDocument>, AdminError> {
        let records = self.store.payments_of_revoked(limit).await?;
        Ok(records.iter().filter_map(RevokedPaymentDocument::new).collect())
    }

    /// The sinks that do not take usage. There are few.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn failing_sinks(&self) -> Result<Vec<FailingSinkDocument>, AdminError> {
        let now = self.clock.now();
        let failing = |UsageSink { name, progress }: UsageSink, since: Timestamp| FailingSinkDocument {
            name,
            since: since.to_string(),
            next_attempt_at: progress.next_at.to_string(),
            last_status: progress.last.as_ref().and_then(|last| last.status),
            last_error: progress.last.and_then(|last| last.error),
        };
        let sinks = self.store.usage_sinks().await?.into_iter();
        Ok(sinks.filter_map(|sink| sink.failing_since(now).map(|since| failing(sink, since))).collect())
    }

    /// The newest unclaimed payments, at most `limit` after a cursor, and how many there are in all: their status, the
    /// plan with the nearest price, and what the wallet's accounts bought before. `chains` are those that are
    /// configured, by their names.
    ///
    /// # Errors
    /// When the store fails, or the cursor is of another list.
    pub async fn unclaimed_payments(
        &self,
        chains: &[(String, Chain)],
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<(Page<UnclaimedDocument>, u64), AdminError> {
        let (Page { items: unclaimed, next }, count) = self.store.unclaimed(after, limit).await?;
        let plans = if unclaimed.is_empty() { Vec::new() } else { self.store.plans().await? };
        let mut documents = Vec::new();
        for UnclaimedPayment { arrival, seen_at } in &unclaimed {
            let Some((name, chain)) = chains.iter().find(|(_, chain)| chain.chain_id == arrival.tx.chain_id) else {
                continue;
            };
            let status = PaymentStatus::of(&*self.store, arrival).await?;
            let mut paid_before = Vec::new();
            for account in status.accounts().into_iter().take(ACCOUNTS) {
                paid_before.extend(self.bought(account, &plans).await?);
            }
            let nearest_plan = arrival.payment.as_ref().ok().and_then(|payment| nearest_plan(&plans, chain, payment));
            let found = FoundPayment { arrival: arrival.clone(), status };
            documents.push(UnclaimedDocument {
                payment: ArrivalDocument::new(name, &found, &plans),
                seen_at: seen_at.to_string(),
                nearest_plan,
                paid_before,
            });
        }
        Ok((Page { items: documents, next }, count))
    }

    /// The newest purchases of an account.
    async fn bought(&self, account: &AccountId, plans: &[Plan]) -> Result<Vec<PaidBeforeDocument>, AdminError> {
        let entries = self.store.newest_entries(account, Period::default(), None, ENTRIES).await?.items;
        let mut bought = Vec::new();
        for entry in entries.iter().filter(|entry| entry.kind.is_purchase() && entry.amount.is_positive()) {
            let Some(payment) = &entry.payment else { continue };
            let Some(record) = self.store.payment(&payment.tx).await? else { continue };
            let amount = Token::of(plans, &record.payment.target()).amount(record.payment.amount).to_string();
            bought.push(PaidBeforeDocument {
                org_id: account.to_string(),
                plan_id: payment.plan_id.clone(),
                plan_label: record.sold.map(|sold| sold.label),
                paid: amount,
                at: entry.created_at.to_string(),
            });
            if bought.len() == PURCHASES {
                break;
            }
        }
        Ok(bought)
    }
}

/// The accounts after a cursor, at most `limit`, of those that run out.
///
/// # Errors
/// When the cursor is of another list.
pub fn runways_after(
    runways: &[AccountRunway],
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<RunwayDocument>, AdminError> {
    let start = match (after, runways.first()) {
        (Some(cursor), Some(AccountRunway { agent_name, .. })) => {
            let last = runway_of_cursor(cursor, agent_name.clone()).ok_or(StoreError::UnknownCursor)?;
            runways.partition_point(|runway| runway.cmp_by_end(&last).is_le())
        }
        _ => 0,
    };
    let rest = runways.get(start..).unwrap_or_default();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let shown = rest.get(..limit).unwrap_or(rest);
    let next = shown.last().filter(|_| shown.len() < rest.len());
    let next = next.map(|AccountRunway { account, balance, used, .. }| {
        Cursor::new(format!("{}.{}.{account}", balance.atoms(), used.atoms()))
    });
    Ok(Page { items: shown.iter().map(|runway| RunwayDocument::new(runway, DAYS)).collect(), next })
}

/// The last account of the previous page, in its state at that time. It may have changed or be gone. Any name will do:
/// nothing is ordered by it.
fn runway_of_cursor(cursor: &Cursor, agent_name: AgentName) -> Option<AccountRunway> {
    let (balance, rest) = cursor.as_str().split_once('.')?;
    let (used, account) = rest.split_once('.')?;
    let [balance, used] = [balance.parse().ok()?, used.parse().ok()?].map(Credits::from_atoms);
    Some(AccountRunway { account: account.parse().ok()?, agent_name, balance, used })
}

/// Whether the operator's own webhook was listed before, and where the store continues.
fn own_of_cursor(cursor: &Cursor) -> Result<(bool, Option<Cursor>), StoreError> {
    let text = cursor.as_str();
    let with = text.strip_prefix(WITH_OWN).map(|rest| (true, Some(Cursor::new(rest))));
    let without = || text.strip_prefix(WITHOUT_OWN).map(|rest| (false, Some(Cursor::new(rest))));
    with.or_else(without).ok_or(StoreError::UnknownCursor)
}

/// The plan on sale whose price is nearest to a payment; of equally near ones, the cheapest.
fn nearest_plan(plans: &[Plan], chain: &Chain, payment: &Payment) -> Option<NearestPlanDocument> {
    let of_target = plans
        .iter()
        .filter(|plan| plan.active && plan.chain_id == chain.chain_id && plan.target(chain) == payment.target());
    let paid = payment.amount.get();
    let (plan, price) = of_target
        .filter_map(|plan| Some((plan, plan.price()?.get())))
        .min_by_key(|(_, price)| (price.abs_diff(paid), Reverse(paid >= *price)))?;
    let difference = TokenUnits::new(price.abs_diff(paid)).to_human(plan.token_decimals);
    Some(NearestPlanDocument {
        plan_id: plan.id.clone(),
        label: plan.label.clone(),
        price: plan.token_amount.to_string(),
        difference,
        is_short: paid < price,
    })
}

#[cfg(test)]
mod tests {
    use metering_core::chains::{Address, TxHash, TxRef};

    use super::*;

    #[test]
    fn nearest_plan_is_the_one_with_the_smallest_difference() {
        let recipient = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
        let chain: Chain = serde_json::from_str(&format!(
            r#"{{"chain_id": 8453, "name": "Base", "public_rpc_url": "", "recipient": "{recipient}", "confirmations": 12}}"#
        ))
        .unwrap();
        let plan = |id: &str, price: &str, active: bool| -> Plan {
            serde_json::from_str(&format!(
                r#"{{"id": "{id}", "chain_id": 8453, "token_symbol": "USDC", "payment_kind": "erc20", "credits": 10,
                    "token_amount": "{price}", "token_contract": "0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0",
                    "token_decimals": 6, "label": "{id}", "active": {active}}}"#
            ))
            .unwrap()
        };
        let plans = [plan("starter", "5", true), plan("large", "50", true), plan("gone", "4.75", false)];
        let payment = |amount| Payment {
            tx: TxRef { chain_id: 8453, hash: TxHash::from_bytes([1; 32]) },
            payer: Address::from_bytes([2; 20]),
            recipient: recipient.parse().unwrap(),
            token: Address::from_bytes([0xc0; 20]),
            amount: TokenUnits::new(amount),
            block_number: 1,
            block_hash: None,
            mined_at: Timestamp::from_unix_millis(0),
        };
        // amount, plan, difference, whether it is short
        let table = [
            (4_750_000, "starter", "0.25", true),
            (5_000_001, "starter", "0.000001", false),
            (40_000_000, "large", "10", true),
            (27_500_000, "starter", "22.5", false),
        ];
        for (amount, id, difference, is_short) in table {
            let nearest = nearest_plan(&plans, &chain, &payment(amount)).unwrap();
            assert_eq!((nearest.plan_id.as_str(), nearest.difference.as_str()), (id, difference), "{amount}");
            assert_eq!(nearest.is_short, is_short, "{amount}");
        }
        let other = Payment { token: Address::ZERO, ..payment(5_000_000) };
        assert!(nearest_plan(&plans, &chain, &other).is_none());
    }

    #[test]
    fn accounts_that_run_out_are_paged_although_they_change() {
        let runway = |number: u32, balance, used| AccountRunway {
            account: format!("org_x000000000000000000{number}").parse().unwrap(),
            agent_name: "my-agent".parse().unwrap(),
            balance: Credits::from_atoms(balance),
            used: Credits::from_atoms(used),
        };
        // The second and the third run out at the same time.
        let mut runways = vec![runway(4, 1, 10), runway(1, 2, 10), runway(3, 4, 20), runway(2, 9, 10)];
        let names = |page: &Page<RunwayDocument>| -> Vec<char> {
            page.items.iter().filter_map(|account| account.org_id.chars().last()).collect()
        };
        let all = runways_after(&runways, None, 4).unwrap();
        assert_eq!((names(&all), all.next), (vec!['4', '1', '3', '2'], None));
        let first = runways_after(&runways, None, 2).unwrap();
        assert_eq!(names(&first), ['4', '1']);
        // The last one of the page is gone.
        runways.remove(1);
        let second = runways_after(&runways, first.next.as_ref(), 2).unwrap();
        assert_eq!((names(&second), second.next), (vec!['3', '2'], None));
        assert_eq!(names(&runways_after(&[], first.next.as_ref(), 2).unwrap()), [' '; 0]);
        for cursor in ["", "1.2", "1.x.org_x0000000000000000001", "1.2.org"] {
            assert!(runways_after(&runways, Some(&Cursor::new(cursor)), 2).is_err(), "{cursor}");
        }
    }
}
