//! The data for deciding a batch, read under the locks of its accounts' meters.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{join, join5};
use metering_core::access::KeyNumber;
use metering_core::charging::{HoldId, KeyMeter, Posting, Remembered, StoredHold, TokenScope};
use metering_core::{RequestId, Timestamp, UsageLine};
use tokio_postgres::Row;

use super::batch::{Batch, Item};
use super::hold_reads::HoldReads;
use super::tokens::{self, TokenWindows};
use super::volumes::{VolumeReads, Volumes};
use crate::charging::access::{self, Access, KeyMeters};
use crate::charging::holds::hold;
use crate::charging::known::Known;
use crate::charging::recent_meters::{Meter, Meters, RecentMeters};
use crate::charging::tail::Tail;
use crate::connection::session::{Client, GenericClient};
use crate::connection::value::Value;
use crate::error::Result;
use crate::rows::{
    KEY_METER_COLUMNS, METER_COLUMNS, bytes, key_meter, key_number, meter_state, stored_result, unsigned,
};

/// The data for deciding a batch.
#[derive(Default)]
pub(super) struct Facts<'b> {
    pub(super) meters: Meters,
    pub(super) remembered: BTreeMap<(i64, String), Remembered>,
    /// The secrets and keys of the batch. Only those count whose version is that of their account's meter.
    pub(super) access: Cow<'b, Access>,
    pub(super) holds: Holds,
    pub(super) volumes: Volumes,
    /// Limits on tokens per minute, of the accounts that have one.
    pub(super) token_limits: BTreeMap<i64, u32>,
    pub(super) token_windows: TokenWindows,
}

/// Holds of the batch's updates and repeated requests by id.
pub(super) type Holds = BTreeMap<HoldId, StoredHold<i64, i64>>;

const REMEMBERED: &str = "SELECT r.account, r.request_id, r.charged, r.balance, r.expires_at, r.fingerprint, r.tries, \
     r.open_until, r.hold \
     FROM unnest($1::BIGINT[], $2::TEXT[]) AS asked (account, request_id) \
     JOIN request_id r ON r.account = asked.account AND r.request_id = asked.request_id \
     WHERE r.expires_at > $3";

impl Batch<'_> {
    /// Locks and reads, in one round trip. If the secrets or keys of an account have changed since this node read them,
    /// another one reads them again.
    pub(super) async fn lock_and_read(
        &self,
        client: &Client,
        known: &Known,
        left: &RecentMeters,
        now: Timestamp,
    ) -> Result<Facts<'_>> {
        let accounts: Vec<i64> = self.accounts.keys().copied().collect();
        let (of, requests): (Vec<i64>, Vec<RequestId>) = self.requests().unzip();
        let requests: Vec<&str> = requests.iter().map(RequestId::as_str).collect();
        let (of_keys, keys): (Vec<i64>, Vec<i64>) =
            self.counted(&self.access, &Holds::new()).map(|(account, key)| (account, i64::from(key.get()))).unzip();
        let lock = format!(
            "SELECT m.account, m.entries, m.access, m.tail_day, m.tail, {METER_COLUMNS}, m.tokens_per_minute \
             FROM meter m WHERE m.account = ANY($1) ORDER BY m.account FOR UPDATE"
        );
        let key_meters = format!(
            "SELECT c.account, c.key, {KEY_METER_COLUMNS} \
             FROM unnest($1::BIGINT[], $2::BIGINT[]) AS asked (account, key) \
             JOIN key_meter c ON c.account = asked.account AND c.key = asked.key"
        );
        // Prepared first, so that the statements themselves are pipelined.
        let (locked, remembered) = (client.prepare(&lock).await?, client.prepare(REMEMBERED).await?);
        let key_meters = if keys.is_empty() { None } else { Some(client.prepare(&key_meters).await?) };
        let holds = HoldReads::prepare(client, &self.items).await?;
        let volumes = VolumeReads::prepare(client, &self.items).await?;
        let (begin, now) = (client.begin(), now.unix_millis());
        let accounts_values: [&dyn Value; 1] = [&accounts];
        let requests_values: [&dyn Value; 3] = [&of, &requests, &now];
        let keys_values: [&dyn Value; 2] = [&of_keys, &keys];
        let ((begun, locked), remembered, key_meters, holds, volumes) = join5(
            join(client.batch_execute(&begin), client.query(&locked, &accounts_values)),
            async {
                if requests.is_empty() { Ok(Vec::new()) } else { client.query(&remembered, &requests_values).await }
            },
            async {
                match &key_meters {
                    Some(statement) => client.query(statement, &keys_values).await,
                    None => Ok(Vec::new()),
                }
            },
            holds.run(client),
            volumes.run(client),
        )
        .await;
        begun?;
        let mut facts = Facts { access: Cow::Borrowed(&self.access), ..Facts::default() };
        facts.add(&locked?, &remembered?, &key_meters?)?;
        let (holds, read) = holds?;
        facts.add_holds(&holds)?;
        facts.volumes = volumes?;
        facts.learn(known, read);
        self.refresh(client, known, &mut facts).await?;
        facts.token_windows = tokens::read(client, &self.token_scopes(&facts)).await?;
        for (account, key) in self.counted(&facts.access, &facts.holds) {
            if let Some(meter) = facts.meters.get_mut(&account) {
                meter.keys.entry(key).or_default();
            }
        }
        left.complete(&mut facts.meters);
        Ok(facts)
    }

    /// Reads the secrets and keys that are not cached as of the locked meters. The meters were locked before this
    /// statement begins, so it sees every change that was committed before.
    async fn refresh(&self, client: &Client, known: &Known, facts: &mut Facts<'_>) -> Result<()> {
        let (mut secrets, mut keys) = (Vec::new(), Vec::new());
        for item in self.items.iter().filter(|item| !item.is_known(facts)) {
            match item.posting {
                Posting::Charge(charge) => secrets.push(charge.key),
                // Of the first key instead, if this one was deleted.
                Posting::Refund(_) => {
                    keys.extend(item.charged_key(&facts.holds));
                    keys.extend(item.account.map(|account| (account, KeyNumber::FIRST)));
                }
                Posting::Settle(_) | Posting::Hold(_) => keys.extend(item.charged_key(&facts.holds)),
            }
        }
        if secrets.is_empty() && keys.is_empty() {
            return Ok(());
        }
        facts.learn(known, access::read(client, &secrets, &keys, &[]).await?);
        Ok(())
    }

    /// The accounts and keys whose token windows the batch counts in.
    fn token_scopes(&self, facts: &Facts<'_>) -> BTreeSet<(i64, TokenScope)> {
        let mut scopes = BTreeSet::new();
        for item in &self.items {
            let Some(account) = item.account else { continue };
            let of_account = match item.posting {
                Posting::Charge(charge) if charge.counted_tokens().is_some() => facts.token_limits.get(&account),
                _ => None,
            };
            scopes.extend(of_account.map(|_| (account, TokenScope::Account)));
            scopes.extend(item.limited_keys(&facts.access).map(|key| (account, key)));
            let hold = item.hold().and_then(|id| facts.holds.get(id)).filter(|stored| stored.account == account);
            let counted = hold.and_then(|stored| stored.hold.tokens.as_ref());
            scopes.extend(counted.into_iter().flat_map(|held| &held.scopes).map(|scope| (account, *scope)));
        }
        scopes
    }

    /// The keys of the batch whose terms are counted, and such parent keys.
    fn counted(&self, access: &Access, holds: &Holds) -> impl Iterator<Item = (i64, KeyNumber)> + use<> {
        let mut counted = BTreeSet::new();
        for (account, key) in self.items.iter().filter_map(|item| item.charged_key(holds)) {
            let chain = access.chain(account, key).filter(|(_, key)| key.is_counted);
            counted.extend(chain.map(|(key, _)| (account, key)));
        }
        counted.into_iter()
    }

    /// Whether the secrets and keys of all items, and the meters of those keys, are here.
    pub(super) fn is_known(&self, facts: &Facts<'_>) -> bool {
        let has_meter = |(account, key)| facts.meters.get(&account).is_some_and(|meter| meter.keys.contains_key(&key));
        self.items.iter().all(|item| item.is_known(facts)) && self.counted(&facts.access, &facts.holds).all(has_meter)
    }
}

impl Item<'_> {
    /// The account and the key that the posting charges, or gives credits back to, as far as they are cached.
    fn charged_key(&self, holds: &Holds) -> Option<(i64, KeyNumber)> {
        let account = self.account?;
        let of_hold = || match self.posting {
            Posting::Hold(update) => holds.get(&update.id).filter(|stored| stored.account == account),
            Posting::Charge(_) | Posting::Refund(_) | Posting::Settle(_) => None,
        };
        Some((account, self.key.or_else(|| Some(of_hold()?.hold.key))?))
    }

    /// Whether the secret and the keys of this item are those of its account's meter.
    fn is_known(&self, facts: &Facts<'_>) -> bool {
        let access = &facts.access;
        let Some((account, key)) = self.charged_key(&facts.holds) else { return true };
        let Some(version) = facts.meters.get(&account).map(|meter| meter.access) else { return true };
        let has_secret = match self.posting {
            Posting::Charge(charge) => access.secrets.get(&charge.key).is_some_and(|secret| secret.is_of(version)),
            Posting::Refund(_) | Posting::Settle(_) | Posting::Hold(_) => true,
        };
        has_secret && access.has_chain(account, key, version)
    }
}

impl Facts<'_> {
    fn add(&mut self, locked: &[Row], remembered: &[Row], key_meters: &[Row]) -> Result<()> {
        for row in locked {
            let (access, entries, tail) = (bytes(row, 2)?, row.try_get(1)?, Tail::of_row(row, 3)?);
            let (state, keys) = (meter_state(row, 5)?, BTreeMap::new());
            let (account, token_limit) = (row.try_get(0)?, unsigned(row, 17)?);
            self.meters.insert(account, Meter { access, state, entries, tail, keys });
            if token_limit != 0 {
                self.token_limits.insert(account, token_limit);
            }
        }
        for row in remembered {
            self.remembered.insert((row.try_get(0)?, row.try_get(1)?), stored_result(row, 2)?);
        }
        for row in key_meters {
            self.add_key_meter(row.try_get(0)?, key_number(row, 1)?, key_meter(row, 2)?);
        }
        Ok(())
    }

    /// Adds rows of [`HoldReads`].
    fn add_holds(&mut self, rows: &[Row]) -> Result<()> {
        for row in rows {
            let stored = StoredHold { account: row.try_get(0)?, line: row.try_get(1)?, hold: hold(row, 2)? };
            self.holds.insert(stored.hold.id, stored);
        }
        Ok(())
    }

    /// Adds secrets, keys and their meters that were read under the locks.
    fn learn(&mut self, known: &Known, (read, meters): (Access, KeyMeters)) {
        if read.len() > 0 {
            known.learn(&read);
            self.access.to_mut().extend(&read);
        }
        for ((account, key), meter) in meters {
            self.add_key_meter(account, key, meter);
        }
    }

    /// The usage lines of the holds by number.
    pub(super) fn lines(&self) -> impl Iterator<Item = (i64, &UsageLine)> {
        self.holds.values().map(|stored| (stored.line, &stored.hold.line))
    }

    fn add_key_meter(&mut self, account: i64, key: KeyNumber, meter: KeyMeter) {
        if let Some(of_account) = self.meters.get_mut(&account) {
            of_account.keys.insert(key, meter);
        }
    }
}
