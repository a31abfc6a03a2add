//! The trades of each block as it becomes final, as server-sent events.
//!
//! An event is generated when the client is ready for it. So slow clients and long replays use no memory, and nothing
//! runs after the client disconnects.

use std::future::ready;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, Stream};
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, sleep};

use crate::chain::{BlockNumber, Chain};
use crate::param::{Query, number};
use crate::refusal::Refusal;
use crate::snapshot;

/// The maximum number of blocks to replay.
const MAX_REPLAY: u64 = 100_000;

/// Shorter than the 30 seconds after which proxies commonly close a silent response.
const MAX_SILENCE: Duration = Duration::from_secs(15);

const GREETING: &[u8] = b": synthetic sample data, not a real market\n\n";
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// The first block of a stream: the one after the last that the client has seen, the one it requests, or the latest
/// final one.
///
/// A browser that reconnects sends its original URL again, so the last block seen takes precedence over the requested
/// one.
pub(crate) fn first_block(
    chain: &Chain,
    query: Query<'_>,
    last_event_id: Option<&str>,
) -> Result<BlockNumber, Refusal> {
    let Some(latest) = chain.finalized() else {
        return Err(Refusal::NotFinal { finalized: None });
    };
    let from_epoch = query.number("from_epoch")?;
    let (name, first) = match (last_event_id, from_epoch) {
        (Some(seen), _) if !seen.is_empty() => ("Last-Event-ID", number("Last-Event-ID", seen)?.saturating_add(1)),
        (_, Some(from_epoch)) => ("from_epoch", from_epoch),
        (_, None) => return Ok(latest.number),
    };
    let first = BlockNumber::from_u64(first);
    let next = latest.number.plus(1);
    if first > next {
        let problem = format!("is ahead of the chain: the next block to become final is {}", next.get());
        return Err(Refusal::invalid(name, problem));
    }
    let earliest = latest.number.minus(MAX_REPLAY);
    if first < earliest {
        let problem = format!("is too far back: streams start at block {} at the earliest", earliest.get());
        return Err(Refusal::invalid(name, problem));
    }
    Ok(first)
}

/// The events from block `first` on. The stream never ends.
pub(crate) fn events(chain: Chain, first: BlockNumber) -> impl Stream<Item = Bytes> + Send + 'static {
    let greeting = stream::once(ready(Bytes::from_static(GREETING)));
    greeting.chain(stream::unfold((chain, first), |(chain, next)| async move {
        let (chunk, next) = next_chunk(&chain, next).await;
        Some((chunk, (chain, next)))
    }))
}

/// The event of block `next` once it is final, and the number of the block after it; or a keep-alive comment, and
/// `next` again.
async fn next_chunk(chain: &Chain, next: BlockNumber) -> (Bytes, BlockNumber) {
    // A replay never waits for anything else; without this, it would starve other tasks on its thread.
    consume_budget().await;
    let too_silent_at = Instant::now() + MAX_SILENCE;
    loop {
        let until_final = chain.until_final(next);
        if until_final.is_zero() {
            return (event(chain, next), next.plus(1));
        }
        let until_too_silent = too_silent_at.saturating_duration_since(Instant::now());
        if until_too_silent.is_zero() {
            return (Bytes::from_static(KEEP_ALIVE), next);
        }
        sleep(until_final.min(until_too_silent)).await;
    }
}

fn event(chain: &Chain, number: BlockNumber) -> Bytes {
    let data = snapshot::all_trades(chain.block(number));
    let head = format!("id: {}\nevent: block\ndata: ", number.get());
    [head.as_bytes(), &data, b"\n\n"].concat().into()
}
