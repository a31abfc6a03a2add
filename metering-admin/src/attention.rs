//! What needs an operator's attention: payments that nobody claimed, usage that was not paid, webhooks that fail, and
//! accounts that run out.

use std::cmp::Reverse;

use metering_core::access::AccountId;
use metering_core::chains::{Chain, TokenUnits};
use metering_core::events::{Delivery, WebhookId, WebhookState};
use metering_core::operators::Period;
use metering_core::payments::{Payment, Plan, UnclaimedPayment};
use metering_core::usage::DayRange;
use metering_core::wire::WebhookDocument;

use crate::administration::Administration;
use crate::error::AdminError;
use crate::payments::{FoundPayment, PaymentStatus, Token};
use crate::wire::{
    ArrivalDocument, FailingWebhookDocument, NearestPlanDocument, PaidBeforeDocument, RunwayDocument,
    UnclaimedDocument, UnpaidUsageDocument,
};

/// The most of each kind that is listed.
const MOST: usize = 20;
/// How many failing deliveries are read: several may go to one webhook.
const DELIVERIES: u32 = 200;
/// The days whose usage says how fast credits are used.
const DAYS: u32 = 7;
/// How many of a wallet's accounts are looked at, and how many of the entries and purchases of each.
const ACCOUNTS: usize = 3;
const ENTRIES: u32 = 100;
const PURCHASES: usize = 3;

impl Administration {
    /// The accounts that run out within a week at the pace of the last seven UTC days, today included: at most 20, the
    /// first to run out first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn accounts_running_out(&self) -> Result<Vec<RunwayDocument>, AdminError> {
        let days = DayRange::last_days(self.clock.now(), DAYS);
        let most = u32::try_from(MOST).unwrap_or(u32::MAX);
        let runways = self.store.accounts_running_out(days, most).await?;
        Ok(runways.iter().map(|runway| RunwayDocument::new(runway, DAYS)).collect())
    }

    /// The webhooks whose next event waits because an attempt to deliver it failed: at most 20, the one that fails longest
    /// first. Those that are switched off are left out.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn failing_webhooks(&self) -> Result<Vec<FailingWebhookDocument>, AdminError> {
        let mut first: Vec<Delivery> = Vec::new();
        for delivery in self.store.failing_deliveries(DELIVERIES).await? {
            if first.iter().all(|known| known.webhook != delivery.webhook) {
                first.push(delivery);
            }
        }
        let (mut failing, now) = (Vec::new(), self.clock.now());
        for delivery in first {
            let is_operators = delivery.webhook == WebhookId::OPERATOR;
            let owner = delivery.event.account.as_ref().filter(|_| !is_operators);
            let webhooks = self.store.webhooks(owner).await?;
            let webhook = webhooks.iter().find(|webhook| webhook.id == delivery.webhook);
            if let Some(webhook) = webhook.filter(|webhook| webhook.state == WebhookState::Active) {
                failing.push(FailingWebhookDocument::new(WebhookDocument::new(webhook, now), owner, &delivery));
            }
            if failing.len() == MOST {
                break;
            }
        }
        Ok(failing)
    }

    /// The newest payments for usage that failed although their requests were served, at most 20: those of accounts that
    /// still owe.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn unpaid_usage(&self) -> Result<Vec<UnpaidUsageDocument>, AdminError> {
        let mut unpaid = Vec::new();
        for record in self.store.unpaid_usage(u32::try_from(MOST).unwrap_or(u32::MAX)).await? {
            let account = self.store.account(&record.account).await?;
            if account.is_some_and(|account| account.totals.balance.is_negative()) {
                unpaid.extend(UnpaidUsageDocument::new(&record));
            }
        }
        Ok(unpaid)
    }

    /// The newest payments that nobody claimed, at most 20, and how many there are: what is known about them, the plan with
    /// the nearest price, and what the wallet's accounts bought before. `chains` are those that are configured, by their
    /// names.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn unclaimed_payments(
        &self,
        chains: &[(String, Chain)],
    ) -> Result<(Vec<UnclaimedDocument>, u64), AdminError> {
        let (unclaimed, count) = self.store.unclaimed(u32::try_from(MOST).unwrap_or(u32::MAX)).await?;
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
        Ok((documents, count))
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
    use metering_core::clock::Timestamp;

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
}
