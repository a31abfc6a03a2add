//! The webhooks, events and deliveries of a memory store.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::access::account::AccountId;
use crate::clock::Timestamp;
use crate::events::delivery::{
    AttemptOutcome, Delivery, DeliveryBacklog, DeliveryFilter, DeliveryId, DeliveryState, DueDelivery, Progress,
};
use crate::events::delivery_shares::DeliveryShares;
use crate::events::event::{Event, NewEvent};
use crate::events::webhook::{Webhook, WebhookId, WebhookOwner, WebhookState};

/// The event state of a store.
#[derive(Debug, Default)]
pub(super) struct EventState {
    /// In the order of creation.
    pub(super) webhooks: Vec<Webhook>,
    /// By number.
    pub(super) events: BTreeMap<i64, Event>,
    /// By number. The events of a delivery outlive it.
    pub(super) deliveries: BTreeMap<DeliveryId, Sending>,
    last_event: i64,
    last_delivery: i64,
}

/// A delivery without its event.
#[derive(Debug)]
pub(super) struct Sending {
    webhook: WebhookId,
    event: i64,
    progress: Progress,
}

impl EventState {
    /// Writes events, and a delivery for each webhook that receives one.
    pub(super) fn write(&mut self, events: &[NewEvent]) {
        for new in events {
            let number = self.append(new);
            let is_theirs = |webhook: &&Webhook| webhook.account.is_none() || webhook.account == new.account;
            let receivers = self.webhooks.iter().filter(is_theirs);
            let receivers: Vec<_> =
                receivers.filter(|webhook| webhook.receives(new.data.kind())).map(|webhook| webhook.id).collect();
            for webhook in receivers {
                self.send(webhook, number, new.created_at);
            }
        }
    }

    /// Writes an event that goes to one webhook only.
    pub(super) fn write_for(&mut self, webhook: WebhookId, new: &NewEvent) -> Option<Delivery> {
        let number = self.append(new);
        let id = self.send(webhook, number, new.created_at);
        self.delivery(id)
    }

    fn append(&mut self, new: &NewEvent) -> i64 {
        self.last_event += 1;
        self.events.insert(self.last_event, Event::of(new, self.last_event));
        self.last_event
    }

    fn send(&mut self, webhook: WebhookId, event: i64, now: Timestamp) -> DeliveryId {
        self.last_delivery += 1;
        let id = DeliveryId::new(self.last_delivery);
        self.deliveries.insert(id, Sending { webhook, event, progress: Progress::new(now) });
        id
    }

    pub(super) fn webhook(&self, account: Option<&AccountId>, id: &WebhookId) -> Option<&Webhook> {
        self.webhooks.iter().find(|webhook| webhook.id == *id && webhook.account.as_ref() == account)
    }

    pub(super) fn delivery(&self, id: DeliveryId) -> Option<Delivery> {
        let Sending { webhook, event, progress } = self.deliveries.get(&id)?;
        let event = self.events.get(event)?.clone();
        Some(Delivery { id, webhook: *webhook, event, progress: progress.clone() })
    }

    fn webhook_of(&self, id: DeliveryId) -> Option<&Webhook> {
        let sending = self.deliveries.get(&id)?;
        self.webhooks.iter().find(|webhook| webhook.id == sending.webhook)
    }

    /// Whether a delivery goes to a webhook of the account; with `None`, to any webhook.
    pub(super) fn is_of(&self, id: DeliveryId, account: Option<&AccountId>) -> bool {
        let of = self.webhook_of(id);
        of.is_some_and(|webhook| account.is_none_or(|account| webhook.account.as_ref() == Some(account)))
    }

    /// Newest first.
    pub(super) fn listed(&self, account: Option<&AccountId>, filter: DeliveryFilter) -> impl Iterator<Item = Delivery> {
        let ids: Vec<_> = self.deliveries.keys().rev().copied().filter(|id| self.is_of(*id, account)).collect();
        let found = move |delivery: &Delivery| {
            filter.webhook.is_none_or(|webhook| delivery.webhook == webhook)
                && filter.state.is_none_or(|state| delivery.progress.state == state)
        };
        ids.into_iter().filter_map(|id| self.delivery(id)).filter(found)
    }

    pub(super) fn remove_webhook(&mut self, id: &WebhookId) {
        self.webhooks.retain(|webhook| webhook.id != *id);
        self.deliveries.retain(|_, sending| sending.webhook != *id);
    }

    /// Makes the first pending delivery to a webhook of an account due.
    pub(super) fn hasten(&mut self, webhook: &WebhookId, now: Timestamp) {
        let waits =
            |sending: &&mut Sending| sending.webhook == *webhook && sending.progress.state == DeliveryState::Pending;
        if let Some(first) = self.deliveries.values_mut().filter(waits).min_by_key(|sending| sending.event) {
            first.progress = first.progress.clone().hastened(now);
        }
    }

    /// The first pending delivery of each account to each active webhook, if it is due, with that webhook. Oldest
    /// first.
    fn due(&self, now: Timestamp) -> Vec<(Delivery, Webhook)> {
        let pending = |sending: &Sending| sending.progress.state == DeliveryState::Pending;
        let mut waiting: Vec<_> =
            self.deliveries.iter().filter(|(_, sending)| pending(sending)).map(|(id, _)| *id).collect();
        // In the order of events, the first pending one of an account to a webhook precedes the others.
        waiting.sort_by_key(|id| (self.deliveries[id].event, *id));
        let (mut begun, mut due) = (Vec::new(), Vec::new());
        for id in waiting {
            let Some((delivery, webhook)) = self.delivery(id).zip(self.webhook_of(id)) else { continue };
            let line = (webhook.id, delivery.event.account.clone());
            if begun.contains(&line) {
                continue;
            }
            begun.push(line);
            if webhook.state == WebhookState::Active && delivery.progress.next_at <= now {
                due.push((delivery, webhook.clone()));
            }
        }
        due.sort_by_key(|(delivery, _)| (delivery.progress.next_at, delivery.id));
        due
    }

    pub(super) fn backlog(&self, now: Timestamp) -> DeliveryBacklog {
        let count = |state| {
            let of = self.deliveries.values().filter(|sending| sending.progress.state == state).count();
            u64::try_from(of).unwrap_or(u64::MAX)
        };
        let oldest_due = self.due(now).first().map(|(delivery, _)| delivery.progress.next_at);
        DeliveryBacklog { pending: count(DeliveryState::Pending), parked: count(DeliveryState::Parked), oldest_due }
    }

    pub(super) fn claim(
        &mut self,
        now: Timestamp,
        lease: Duration,
        limit: u32,
        owner: WebhookOwner,
        shares: &mut DeliveryShares,
    ) -> Vec<DueDelivery> {
        let theirs = self.due(now).into_iter().filter(|(_, webhook)| owner.owns(webhook.account.as_ref()));
        let claimed = theirs.filter(|(_, webhook)| shares.take_for(webhook));
        let claimed = claimed.take(usize::try_from(limit).unwrap_or(usize::MAX)).map(|(mut delivery, webhook)| {
            delivery.progress = delivery.progress.claimed(now, lease);
            DueDelivery { delivery, webhook }
        });
        let claimed: Vec<_> = claimed.collect();
        for DueDelivery { delivery, .. } in &claimed {
            self.set_progress(delivery.id, delivery.progress.clone());
        }
        claimed
    }

    pub(super) fn finish(
        &mut self,
        id: DeliveryId,
        attempt: u32,
        outcome: &AttemptOutcome,
        now: Timestamp,
    ) -> Option<Delivery> {
        let sending = self.deliveries.get(&id)?;
        let (webhook, progress) = (sending.webhook, sending.progress.clone().finished(attempt, outcome, now)?);
        self.set_progress(id, progress);
        if *outcome == AttemptOutcome::Gone
            && let Some(gone) = self.webhooks.iter_mut().find(|known| known.id == webhook && known.account.is_some())
        {
            gone.state = WebhookState::Gone;
        }
        self.delivery(id)
    }

    pub(super) fn set_progress(&mut self, id: DeliveryId, progress: Progress) {
        if let Some(sending) = self.deliveries.get_mut(&id) {
            sending.progress = progress;
        }
    }

    pub(super) fn forget_expired(&mut self, now: Timestamp) -> u64 {
        let before = self.events.len();
        self.events.retain(|_, event| now < event.created_at.saturating_add(Event::RETENTION));
        let mut newer: HashMap<AccountId, usize> = HashMap::new();
        let excess: Vec<i64> = self
            .events
            .iter()
            .rev()
            .filter_map(|(number, event)| {
                let newer = newer.entry(event.account.clone()?).or_default();
                *newer += 1;
                (*newer > Event::MAX_PER_ACCOUNT as usize).then_some(*number)
            })
            .collect();
        excess.iter().for_each(|number| drop(self.events.remove(number)));
        self.deliveries.retain(|_, sending| self.events.contains_key(&sending.event));
        u64::try_from(before - self.events.len()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::event::{EventData, KeyEvent};

    #[test]
    fn an_account_keeps_its_newest_events() {
        let mut state = EventState::default();
        let now = Timestamp::from_unix_millis(1_795_262_400_000);
        let write = |state: &mut EventState, account: &AccountId, count: u32| {
            let key = KeyEvent { key_id: "key_0123456789abcdef0123".parse().unwrap(), key_name: "a".parse().unwrap() };
            let new = NewEvent { account: Some(account.clone()), data: EventData::KeyCreated(key), created_at: now };
            (0..count).for_each(|_| state.write(std::slice::from_ref(&new)));
        };
        let (flooding, other): (AccountId, AccountId) =
            ("org_xxxxxxxxxxxxxxxxxxxx".parse().unwrap(), "org_yyyyyyyyyyyyyyyyyyyy".parse().unwrap());
        write(&mut state, &other, 2);
        write(&mut state, &flooding, Event::MAX_PER_ACCOUNT + 3);
        assert_eq!(state.forget_expired(now), 3);
        assert_eq!(state.events.keys().take(3).copied().collect::<Vec<_>>(), [1, 2, 6], "the oldest of the flood");
        assert_eq!(state.forget_expired(now), 0);
    }
}
