//! A batch of postings, with the numbers of what they name.

use std::collections::BTreeMap;

use foldhash::HashMap;
use metering_core::access::KeyNumber;
use metering_core::charging::{HoldId, Posting};
use metering_core::{AccountId, RequestId, UsageLine};

use crate::charging::access::Access;
use crate::charging::known::{Known, Numbered};
use crate::connection::session::Client;
use crate::error::Result;

/// A batch whose secrets, accounts and usage lines are resolved to numbers.
pub(super) struct Batch<'p> {
    pub(super) items: Vec<Item<'p>>,
    /// The accounts of refunds, settlements and holds.
    pub(super) ids: HashMap<&'p AccountId, i64>,
    /// The numbers of usage lines, but for those of holds.
    pub(super) lines: HashMap<&'p UsageLine, i64>,
    /// Its secrets and keys, as far as they are cached before the meters are locked.
    pub(super) access: Access,
    /// All accounts by number. They are locked in this order.
    pub(super) accounts: BTreeMap<i64, AccountId>,
}

pub(super) struct Item<'p> {
    pub(super) posting: &'p Posting,
    pub(super) account: Option<i64>,
    /// The key that is charged, or gets credits back, if it is cached.
    pub(super) key: Option<KeyNumber>,
}

pub(super) type Lines<'p> = foldhash::HashMap<i64, &'p UsageLine>;

impl<'p> Batch<'p> {
    pub(super) async fn resolve(client: &Client, known: &Known, postings: &'p [Posting]) -> Result<Self> {
        let (mut secrets, mut ids, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        for posting in postings {
            match posting {
                Posting::Charge(charge) => {
                    secrets.push(charge.key);
                    lines.push(&charge.line);
                }
                Posting::Refund(refund) => {
                    ids.push(&refund.account);
                    lines.push(&refund.line);
                }
                Posting::Settle(settlement) => {
                    ids.push(&settlement.account);
                    lines.push(&settlement.line);
                }
                Posting::Hold(update) => ids.push(&update.account),
            }
        }
        let of_ids = known.accounts(client, &ids).await?;
        let refunds = postings.iter().filter(|posting| !matches!(posting, Posting::Charge(_))).zip(&of_ids);
        let keys: Vec<_> = refunds
            .filter_map(|(posting, of)| {
                Some(of.as_ref()?.number).and_then(|of| Some((of, refunded(posting, of, known)?)))
            })
            .collect();
        let access = known.access(client, &secrets, &keys).await?;
        let numbers = known.lines(client, &lines).await?;
        let lines = lines.into_iter().zip(numbers).collect();
        let numbered = ids.into_iter().zip(&of_ids).filter_map(|(id, of)| Some((id, of.as_ref()?.number)));
        let ids = numbered.collect();
        let mut of_ids = of_ids.into_iter();
        let (mut items, mut accounts) = (Vec::with_capacity(postings.len()), BTreeMap::new());
        for posting in postings {
            let (found, key) = match posting {
                Posting::Charge(charge) => {
                    let secret = access.secrets.get(&charge.key);
                    let numbered = secret.map(|secret| Numbered { number: secret.account, id: secret.id.clone() });
                    (numbered, secret.map(|secret| secret.key))
                }
                Posting::Refund(_) | Posting::Settle(_) | Posting::Hold(_) => {
                    let found = of_ids.next().flatten();
                    let key = found.as_ref().and_then(|of| refunded(posting, of.number, known));
                    (found, key)
                }
            };
            let account = found.map(|Numbered { number, id }| {
                accounts.entry(number).or_insert(id);
                number
            });
            items.push(Item { posting, account, key });
        }
        Ok(Self { items, ids, lines, access, accounts })
    }

    pub(super) fn requests(&self) -> impl Iterator<Item = (i64, RequestId)> + '_ {
        self.items.iter().filter_map(|item| Some((item.account?, item.request()?)))
    }
}

impl Item<'_> {
    /// The request id whose remembered outcome decides the posting.
    pub(super) fn request(&self) -> Option<RequestId> {
        match self.posting {
            Posting::Charge(charge) => Some(charge.request_id.as_ref()?.of_key_number(self.key?)),
            Posting::Refund(refund) => refund.delivery.as_ref().map(|failed| failed.request.clone()),
            Posting::Settle(settlement) => Some(settlement.request.clone()),
            Posting::Hold(update) => update.delivery.as_ref().map(|failed| failed.request.clone()),
        }
    }

    /// The hold that the posting updates.
    pub(super) fn hold(&self) -> Option<&HoldId> {
        match self.posting {
            Posting::Hold(update) => Some(&update.id),
            Posting::Charge(_) | Posting::Refund(_) | Posting::Settle(_) => None,
        }
    }
}

/// The key that a posting of this account gives credits back to, if it is cached.
fn refunded(posting: &Posting, account: i64, known: &Known) -> Option<KeyNumber> {
    match posting {
        Posting::Refund(refund) => Some(refund.key),
        Posting::Hold(update) => known.key_of_hold(&update.id, account),
        Posting::Charge(_) | Posting::Settle(_) => None,
    }
}
