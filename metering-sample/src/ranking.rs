//! The most active tokens and pools of the last day or another period, paged.

use std::cmp::Reverse;

use bytes::Bytes;
use metering_core::chains::Address;
use serde::Serialize;

use crate::chain::{Block, Chain};
use crate::document::render;
use crate::listing::{PoolMetadata, TokenMetadata};
use crate::param::{Query, at_least_one};
use crate::quantity::Usd;
use crate::refusal::Refusal;
use crate::token::TOKENS;
use crate::volume::{self, MAX_BLOCKS_SUMMED, Span};

const SECONDS_PER_DAY: u64 = 86_400;
const MAX_SIZE: u64 = 100;
const DEFAULT_SIZE: u64 = 10;

/// The requested page of a ranking, and its period.
struct Page {
    page: u64,
    size: u64,
    metadata: bool,
    span: Span,
}

#[derive(Serialize)]
struct Ranking<T> {
    page: u64,
    size: u64,
    /// The number of entries on all pages.
    total: usize,
    #[serde(flatten)]
    span: Span,
    #[serde(flatten)]
    entries: T,
}

#[derive(Serialize)]
struct ActiveTokens {
    tokens: Vec<ActiveToken>,
}

#[derive(Serialize)]
struct ActiveToken {
    token_address: Address,
    trade_count: u64,
    volume_usd: Usd,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<TokenMetadata>,
}

#[derive(Serialize)]
struct ActivePools {
    pools: Vec<ActivePool>,
}

#[derive(Serialize)]
struct ActivePool {
    pool_address: Address,
    trade_count: u64,
    volume_usd: Usd,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<PoolMetadata>,
}

/// The tokens by traded volume.
pub(crate) fn tokens(chain: &Chain, latest: Block, query: Query<'_>) -> Result<Bytes, Refusal> {
    let page = Page::read(chain, latest, query)?;
    let sums = page.span.traded();
    let active = TOKENS.into_iter().map(|token| {
        let traded = volume::of_all(token, &sums);
        let metadata = page.metadata.then(|| token.into());
        ActiveToken { token_address: token.address, trade_count: traded.trades, volume_usd: traded.value, metadata }
    });
    let mut tokens: Vec<_> = active.filter(|token| token.trade_count > 0).collect();
    tokens.sort_by_key(|token| Reverse((token.volume_usd, token.token_address)));
    Ok(page.render(latest, tokens, |tokens| ActiveTokens { tokens }))
}

/// The pools by traded volume.
pub(crate) fn pools(chain: &Chain, latest: Block, query: Query<'_>) -> Result<Bytes, Refusal> {
    let page = Page::read(chain, latest, query)?;
    let active = page.span.traded().into_iter().map(|(pool, traded)| ActivePool {
        pool_address: pool.address,
        trade_count: traded.trades,
        volume_usd: traded.value,
        metadata: page.metadata.then(|| pool.into()),
    });
    let mut pools: Vec<_> = active.filter(|pool| pool.trade_count > 0).collect();
    pools.sort_by_key(|pool| Reverse((pool.volume_usd, pool.pool_address)));
    Ok(page.render(latest, pools, |pools| ActivePools { pools }))
}

impl Page {
    fn read(chain: &Chain, latest: Block, query: Query<'_>) -> Result<Self, Refusal> {
        let page = at_least_one("page", query.number("page")?.unwrap_or(1))?;
        let size = at_least_one("size", query.number("size")?.unwrap_or(DEFAULT_SIZE))?;
        if size > MAX_SIZE {
            return Err(Refusal::invalid("size", format!("must be at most {MAX_SIZE}")));
        }
        let span = match query.number("time_interval")? {
            Some(seconds) => Span::of_last(at_least_one("time_interval", seconds)?, chain, latest)?,
            // With blocks faster than mainnet's, a day has more blocks than one response may sum up.
            None => Span::of_last(chain.seconds_of(MAX_BLOCKS_SUMMED).min(SECONDS_PER_DAY), chain, latest)?,
        };
        Ok(Self { page, size, metadata: query.flag("metadata")?, span })
    }

    fn render<E, T: Serialize>(self, latest: Block, entries: Vec<E>, name: impl FnOnce(Vec<E>) -> T) -> Bytes {
        let total = entries.len();
        let skipped = usize::try_from((self.page - 1).saturating_mul(self.size)).unwrap_or(usize::MAX);
        let taken = usize::try_from(self.size).unwrap_or(usize::MAX);
        let entries = name(entries.into_iter().skip(skipped).take(taken).collect());
        render(latest, Ranking { page: self.page, size: self.size, total, span: self.span, entries })
    }
}
