//! Lists all daily totals page by page: the rows of the table, plus the usage that is still in tails.

use std::collections::BTreeMap;
use std::sync::Arc;

use metering_core::access::KeyNumber;
use metering_core::backend::{credits, one_more_than, page, unknown_cursor};
use metering_core::store::{Cursor, Page};
use metering_core::transfer::{Part, Position};
use metering_core::usage::DailyTotal;
use metering_core::{AccountId, ClientSource, Day, UsageLine};

use crate::charging::known::Known;
use crate::charging::tail::Tail;
use crate::connection::session::GenericClient;
use crate::connection::value::Value;
use crate::error::Result;
use crate::rows::{all, key_number, parsed, unsigned};

/// The sort key of a daily total: day, account, its line's route, method and source, compared as bytes, and the key.
type DailyKey = (i64, i64, Arc<str>, Arc<str>, &'static str, KeyNumber);

/// Daily totals of all accounts after a cursor, at most `limit`.
pub(crate) async fn list<C: GenericClient>(
    client: &C,
    known: &Known,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<DailyTotal>> {
    let start = || (i64::MIN, i64::MIN, "".into(), "".into(), "", KeyNumber::FIRST);
    let position = after.map(position_of).transpose()?.unwrap_or_else(start);
    // The first totals overall are among the first of the table and of the tails. A total with a part in each is among
    // the first of both.
    let mut totals = folded(client, &position, limit).await?;
    in_tails(client, known, &position, limit, &mut totals).await?;
    let total = |(key, (account, calls, atoms)): (DailyKey, (AccountId, u64, i128))| {
        let (day, _, route_template, http_method, source, number) = key.clone();
        let line = UsageLine { route_template, http_method, source: ClientSource::from_name(source) };
        let credits_used = credits(atoms)?;
        let day = Day::from_unix_days(day);
        Ok((key, DailyTotal { account, day, line, key: number, calls, credits_used }))
    };
    let most = usize::try_from(one_more_than(limit)).unwrap_or(usize::MAX);
    let totals = totals.into_iter().take(most).map(total).collect::<Result<_>>()?;
    Ok(page(totals, limit, cursor_of))
}

type DailyTotals = BTreeMap<DailyKey, (AccountId, u64, i128)>;

async fn folded<C: GenericClient>(client: &C, after: &DailyKey, limit: u32) -> Result<DailyTotals> {
    // The first comparison is there so that the index can be used.
    let sql = "SELECT u.day, u.account, n.route_template, n.http_method, n.source, a.org_id, u.calls, u.amount, \
         u.key \
         FROM usage_daily u JOIN account a ON a.id = u.account JOIN usage_line n ON n.id = u.line \
         WHERE (u.day, u.account) >= ($1, $2) AND (u.day, u.account, n.route_template COLLATE \"C\", \
         n.http_method COLLATE \"C\", n.source COLLATE \"C\", u.key) > ($1, $2, $3, $4, $5, $6) \
         ORDER BY u.day, u.account, n.route_template COLLATE \"C\", n.http_method COLLATE \"C\", \
         n.source COLLATE \"C\", u.key LIMIT $7";
    let (day, account, route, method, source, key) = after;
    let key = i64::from(key.get());
    let values: [&dyn Value; 7] =
        [day, account, &route.as_ref(), &method.as_ref(), source, &key, &one_more_than(limit)];
    let mut totals = DailyTotals::new();
    for row in all(client, sql, &values).await? {
        let (route, method): (&str, &str) = (row.try_get(2)?, row.try_get(3)?);
        let source = ClientSource::from_name(row.try_get(4)?).as_str();
        let key = (row.try_get(0)?, row.try_get(1)?, route.into(), method.into(), source, key_number(&row, 8)?);
        totals.insert(key, (parsed(&row, 5)?, unsigned(&row, 6)?, row.try_get::<_, i64>(7)?.into()));
    }
    Ok(totals)
}

/// Adds the usage that is not folded yet.
async fn in_tails<C: GenericClient>(
    client: &C,
    known: &Known,
    after: &DailyKey,
    limit: u32,
    totals: &mut DailyTotals,
) -> Result<()> {
    let sql = "SELECT m.account, a.org_id, m.tail_day, m.tail FROM meter m JOIN account a ON a.id = m.account \
               WHERE (m.tail_day, m.account) >= ($1, $2) AND m.tail <> '' ORDER BY m.tail_day, m.account LIMIT $3";
    // Each tail has at least one total, but the totals of the first tail may all be before the cursor.
    for row in all(client, sql, &[&after.0, &after.1, &(one_more_than(limit) + 1)]).await? {
        let (account, id, tail): (i64, AccountId, _) = (row.try_get(0)?, parsed(&row, 1)?, Tail::of_row(&row, 2)?);
        for ((line, number), (calls, atoms)) in tail.totals()? {
            let UsageLine { route_template, http_method, source } = known.line(client, line).await?;
            let day = tail.day.unwrap_or_default();
            let key = (day, account, route_template, http_method, source.as_str(), number);
            if key > *after {
                let total = totals.entry(key).or_insert_with(|| (id.clone(), 0, 0));
                (total.1, total.2) = (total.1 + calls, total.2 + atoms);
            }
        }
    }
    Ok(())
}

fn cursor_of((day, account, route, method, source, key): &DailyKey) -> Cursor {
    let text = |text: &str| Part::Text(text.to_owned());
    let [day, account, key] = [*day, *account, key.get().into()].map(Part::Number);
    Position(vec![day, account, text(route), text(method), text(source), key]).cursor()
}

fn position_of(cursor: &Cursor) -> Result<DailyKey> {
    let parts = Position::of(cursor, 6)?.0;
    let [Part::Number(day), Part::Number(account), texts @ .., Part::Number(key)] = &*parts else {
        return Err(unknown_cursor().into());
    };
    let [Part::Text(route), Part::Text(method), Part::Text(source)] = texts else {
        return Err(unknown_cursor().into());
    };
    let key = KeyNumber::new(u32::try_from(*key).map_err(|_| unknown_cursor())?);
    let source = ClientSource::from_name(source).as_str();
    Ok((*day, *account, route.as_str().into(), method.as_str().into(), source, key))
}
