//! The price of a token in a pool over a period, in steps.

use std::time::Duration;

use bytes::Bytes;
use metering_core::chains::Address;
use serde::Serialize;

use crate::chain::{Block, BlockNumber, Chain};
use crate::document::render;
use crate::pool::Pool;
use crate::quantity::{Quantity, Usd};
use crate::quote::side_in;
use crate::refusal::Refusal;
use crate::token::Token;

/// The maximum number of points in one response.
const MAX_POINTS: u64 = 1_000;

#[derive(Serialize)]
struct Series {
    token_address: Address,
    symbol: &'static str,
    pool_address: Address,
    quote_token: &'static str,
    time_interval: u64,
    step_seconds: u64,
    points: Vec<Point>,
}

/// The price at a time: that of the last block mined by then.
#[derive(Serialize)]
struct Point {
    timestamp: i64,
    block_number: BlockNumber,
    price: Quantity,
    price_usd: Usd,
}

/// The prices at the latest final block and every `step` seconds before, back to `interval` seconds; oldest first.
pub(crate) fn prices(
    chain: &Chain,
    latest: Block,
    (token, pool): (&Token, &Pool),
    (interval, step): (u64, u64),
) -> Result<Bytes, Refusal> {
    let side = side_in(token, pool)?;
    if step > interval {
        return Err(Refusal::invalid("step_seconds", "must not be more than time_interval"));
    }
    let steps = interval / step;
    if steps >= MAX_POINTS {
        let problem = format!("is too small: it gives more than {MAX_POINTS} points");
        return Err(Refusal::invalid("step_seconds", problem));
    }
    let point = |steps_back: u64| {
        let at = latest.mined_at.saturating_sub(Duration::from_secs(steps_back.saturating_mul(step)));
        let block = chain.last_mined_by(at)?;
        Some(Point {
            timestamp: at.unix_seconds(),
            block_number: block,
            price: pool.price(side, block),
            price_usd: pool.price_usd(side, block),
        })
    };
    let points = (0..=steps).rev().map(point).collect::<Option<Vec<_>>>();
    let points = points.ok_or_else(|| Refusal::invalid("time_interval", "reaches back before the first block"))?;
    let content = Series {
        token_address: token.address,
        symbol: token.symbol,
        pool_address: pool.address,
        quote_token: pool.token(side.other()).symbol,
        time_interval: interval,
        step_seconds: step,
        points,
    };
    Ok(render(latest, content))
}
