//! The sample feed: what `metering-server` serves behind its gateway when no upstream is configured.
//!
//! It serves synthetic trades of a synthetic chain on every route of the default catalogue, so that keys, charges, rate
//! limits and clients can be tried out. Every response says that it is sample data. A block's content is a pure
//! function of its number, and the clock alone determines the chain's height. So servers agree without sharing
//! anything, and a restart changes nothing.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use metering_core::SystemClock;
//! use metering_sample::{SampleFeed, SampleResponse};
//!
//! let feed = SampleFeed::new(Arc::new(SystemClock), Duration::from_secs(12));
//! let SampleResponse::Json { status, body } = feed.respond("/mpp/ethPrice", None, None) else { unreachable!() };
//! assert_eq!(status, 200);
//! assert!(String::from_utf8_lossy(&body).contains("\"sample\":true"));
//! ```

mod chain;
mod document;
mod history;
mod listing;
mod noise;
mod param;
mod pool;
mod quantity;
mod quote;
mod ranking;
mod refusal;
mod response;
mod series;
mod snapshot;
mod stream;
#[cfg(test)]
mod tests;
mod token;
mod trade;
mod volume;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use metering_core::Clock;

use crate::chain::{Block, Chain};
use crate::param::{Query, number, pool, seconds, token};
use crate::refusal::Refusal;
pub use crate::response::SampleResponse;

/// The default catalogue: the routes of the sample feed and their prices, as JSON for [`Catalogue::from_json`].
///
/// [`Catalogue::from_json`]: metering_core::Catalogue::from_json
pub const ROUTES: &str = include_str!("../routes.json");

/// The sample feed. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SampleFeed {
    chain: Chain,
}

impl SampleFeed {
    /// A feed whose chain adds a block every `block_time` (at least a millisecond).
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, block_time: Duration) -> Self {
        Self { chain: Chain::new(clock, block_time) }
    }

    /// Responds to a request with a path and query in normal form, as [`metering_core::Catalogue::resolve`] returns
    /// them. `last_event_id` is the value of the `Last-Event-ID` header, which resumes a stream.
    #[must_use]
    pub fn respond(&self, path: &str, query: Option<&str>, last_event_id: Option<&str>) -> SampleResponse {
        let query = Query::new(query);
        let response = if path == "/mpp/stream/allTrades" {
            self.events(query, last_event_id)
        } else {
            self.document(path, query).map(|body| SampleResponse::Json { status: 200, body })
        };
        response.unwrap_or_else(Refusal::into_response)
    }

    fn events(&self, query: Query<'_>, last_event_id: Option<&str>) -> Result<SampleResponse, Refusal> {
        let first = stream::first_block(&self.chain, query, last_event_id)?;
        Ok(SampleResponse::Events(stream::events(self.chain.clone(), first).boxed()))
    }

    fn document(&self, path: &str, query: Query<'_>) -> Result<Bytes, Refusal> {
        let path = path.strip_prefix("/mpp/").ok_or(Refusal::UnknownRoute)?;
        let segments: Vec<&str> = path.split('/').collect();
        let chain = &self.chain;
        Ok(match segments[..] {
            ["pool", of, "metadata"] => listing::pool_metadata(self.latest()?, pool(of)?),
            ["token", "price", of, within] => quote::token_in_pool(self.latest()?, token(of)?, pool(within)?)?,
            ["token", "price", of, within, block] => {
                quote::token_in_pool(self.block(block)?, token(of)?, pool(within)?)?
            }
            ["token", of, "pools"] => listing::pools_of(self.latest()?, token(of)?),
            ["ethPrice"] => quote::eth(self.latest()?),
            ["ethPrice", block] => quote::eth(self.block(block)?),
            ["snapshot", "base_all_pools", of] => snapshot::base_of_all(self.latest()?, token(of)?),
            ["snapshot", "base", of] => snapshot::base(self.latest()?, pool(of)?),
            ["snapshot", "base", of, block] => snapshot::base(self.block(block)?, pool(of)?),
            ["snapshot", "trades", of] => snapshot::pool_trades(self.latest()?, pool(of)?),
            ["snapshot", "trades", of, block] => snapshot::pool_trades(self.block(block)?, pool(of)?),
            ["snapshot", "allTrades"] => snapshot::all_trades(self.latest()?),
            ["snapshot", "allTrades", block] => snapshot::all_trades(self.block(block)?),
            ["tokenPrices", "all", of] => quote::token_everywhere(self.latest()?, token(of)?),
            ["tokenPrices", "all", of, block] => quote::token_everywhere(self.block(block)?, token(of)?),
            ["tradeVolumeAllPools", of, interval] => {
                volume::token_volume(chain, self.latest()?, token(of)?, seconds("time_interval", interval)?)?
            }
            ["tradeVolume", of, interval] => {
                volume::pool_volume(chain, self.latest()?, pool(of)?, seconds("time_interval", interval)?)?
            }
            ["poolTrades", of, start, end] => {
                let times = (number("start_timestamp", start)?, number("end_timestamp", end)?);
                history::trades_between(chain, self.latest()?, pool(of)?, times)?
            }
            ["timeSeries", of, within, interval, step] => {
                let times = (seconds("time_interval", interval)?, seconds("step_seconds", step)?);
                series::prices(chain, self.latest()?, (token(of)?, pool(within)?), times)?
            }
            ["dailyActiveTokens"] => ranking::tokens(chain, self.latest()?, query)?,
            ["dailyActivePools"] => ranking::pools(chain, self.latest()?, query)?,
            _ => return Err(Refusal::UnknownRoute),
        })
    }

    /// The latest final block.
    fn latest(&self) -> Result<Block, Refusal> {
        self.chain.finalized().ok_or(Refusal::NotFinal { finalized: None })
    }

    /// The block named in a path segment.
    fn block(&self, text: &str) -> Result<Block, Refusal> {
        param::final_block(&self.chain, text)
    }
}
