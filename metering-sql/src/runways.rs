//! Which accounts will soon have used up their remaining credits.

use std::collections::HashMap;

use metering_core::backend::{OperationsSums, credits};
use metering_core::operators::AccountRunway;
use metering_core::usage::DayRange;

use crate::executor::Executor;
use crate::fault::Result;
use crate::{accounts, usage, values};

/// How many accounts are read: those that used most.
const CANDIDATES: usize = 10_000;

/// The accounts that run out, at most `limit`, the first to run out first.
pub async fn shortest(db: &mut dyn Executor, days: DayRange, limit: u32) -> Result<Vec<AccountRunway>> {
    let mut sums = OperationsSums::<i64, i64>::new(days);
    usage::add_all(db, days, &mut sums).await?;
    let used: HashMap<i64, i128> =
        sums.heaviest_users(CANDIDATES).into_iter().filter(|(_, atoms)| *atoms > 0).collect();
    if used.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<i64> = used.keys().copied().collect();
    let mut runways = Vec::new();
    for (row, account) in accounts::select(db, "a.id {in ?1} AND a.revoked_at IS NULL", &values![rows]).await? {
        let atoms = used.get(&row).copied().unwrap_or_default();
        runways.extend(AccountRunway::of(&account, credits(atoms)?));
    }
    runways.sort_by(AccountRunway::cmp_by_end);
    runways.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(runways)
}
