//! The gas price and gas limit of a transaction.

use metering_core::chains::TokenUnits;

use super::calls::{FeeBlock, units};
use super::transaction::GasPrice;
use crate::call::Call;
use crate::encoding::Amount;
use crate::failure::Failure;
use crate::results::BatchResults;

/// The calls that determine the gas price.
pub(crate) fn calls() -> [Call; 3] {
    [Call::newest_block(), Call::gas_price(), Call::tip()]
}

/// Reads the responses to [`calls`].
pub(crate) fn read(results: &mut BatchResults<'_>) -> Result<GasPrice, Failure> {
    let block: FeeBlock = results.next()?;
    let usual = units(results.next()?).get();
    // Not every node with a base fee supports this call. Without it, the tip is derived from the usual price.
    let tip = results.next_or_error::<Amount>()?.ok().map(|tip| units(tip).get());
    Ok(price(block.base_fee_per_gas.map(|fee| units(fee).get()), usual, tip))
}

/// Twice the base fee: enough for six full blocks in a row, each of which raises it by at most an eighth (EIP-1559).
fn price(base_fee: Option<u128>, usual: u128, tip: Option<u128>) -> GasPrice {
    match base_fee {
        None => GasPrice::Legacy(usual),
        Some(base_fee) => {
            let tip = tip.unwrap_or_else(|| usual.saturating_sub(base_fee));
            GasPrice::Dynamic { tip, most: base_fee.saturating_mul(2).saturating_add(tip) }
        }
    }
}

/// A price high enough to replace transactions with these prices: at least an eighth more than each of them, for the
/// tip as well. Nodes require a tenth.
pub(crate) fn outbid(price: GasPrice, replaced: &[GasPrice]) -> GasPrice {
    let more = |than: u128| than.saturating_add(than.div_ceil(8).max(1));
    let most = replaced.iter().map(|old| more(old.most())).fold(price.most(), u128::max);
    match price {
        GasPrice::Legacy(_) => GasPrice::Legacy(most),
        GasPrice::Dynamic { tip, .. } => {
            let tip = replaced.iter().map(|old| more(old.tip())).fold(tip, u128::max);
            GasPrice::Dynamic { tip, most: most.max(tip) }
        }
    }
}

/// The gas limit of a transaction that would use `estimate` now: a quarter more, since earlier transactions may change
/// how much it uses.
pub(crate) const fn gas_limit(estimate: u64) -> u64 {
    estimate.saturating_add(estimate / 4)
}

/// The highest fee of a transfer of this many of a token's smallest units, in the smallest unit of the chain's coin:
/// the value of the tokens. `coin` is the price of a whole coin of 18 decimals, in the token's smallest units.
pub(crate) fn worth(value: TokenUnits, coin: TokenUnits) -> TokenUnits {
    const WHOLE_COIN: u128 = 1_000_000_000_000_000_000;
    let worth = value.get().checked_mul(WHOLE_COIN).map_or(u128::MAX, |wei| wei / coin.get().max(1));
    TokenUnits::new(worth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fee_cap_is_twice_the_base_fee_plus_tip() {
        let dynamic = |tip, most| GasPrice::Dynamic { tip, most };
        let most = u128::MAX;
        // base fee, usual price, tip, price
        let table = [
            (None, 20, Some(3), GasPrice::Legacy(20)),
            (None, 20, None, GasPrice::Legacy(20)),
            (Some(10), 12, Some(3), dynamic(3, 23)),
            (Some(10), 12, None, dynamic(2, 22)),
            (Some(10), 7, None, dynamic(0, 20)),
            (Some(0), 5, Some(0), dynamic(0, 0)),
            (Some(most), most, Some(most), dynamic(most, most)),
        ];
        for (base_fee, usual, tip, expected) in table {
            assert_eq!(price(base_fee, usual, tip), expected, "{base_fee:?} {usual} {tip:?}");
        }
    }

    #[test]
    fn a_replacement_pays_an_eighth_more_than_all_before_it() {
        let dynamic = |tip, most| GasPrice::Dynamic { tip, most };
        let (legacy, max) = (GasPrice::Legacy, u128::MAX);
        // price now, prices of the replaced ones, price
        let table = [
            (dynamic(3, 23), vec![], dynamic(3, 23)),
            (dynamic(3, 23), vec![dynamic(3, 23)], dynamic(4, 26)),
            (dynamic(3, 23), vec![dynamic(8, 80), dynamic(16, 16)], dynamic(18, 90)),
            (dynamic(100, 900), vec![dynamic(8, 80)], dynamic(100, 900)),
            (dynamic(0, 0), vec![dynamic(0, 0)], dynamic(1, 1)),
            (dynamic(3, 23), vec![legacy(80)], dynamic(90, 90)),
            (legacy(20), vec![], legacy(20)),
            (legacy(20), vec![legacy(20)], legacy(23)),
            (legacy(20), vec![dynamic(1, 80)], legacy(90)),
            (dynamic(1, 2), vec![dynamic(max, max)], dynamic(max, max)),
        ];
        for (now, replaced, expected) in table {
            assert_eq!(outbid(now, &replaced), expected, "{now:?} {replaced:?}");
        }
    }

    #[test]
    fn a_transfer_is_worth_what_its_tokens_cost_in_coins() {
        // units of a token with 6 decimals, units that a coin costs, wei
        let table = [
            (50_000, 2_500_000_000, 20_000_000_000_000),
            (1, 3_000_000_000, 333_333_333),
            (0, 1, 0),
            (5, 0, 5_000_000_000_000_000_000),
            (u128::MAX, 1, u128::MAX),
        ];
        for (value, coin, wei) in table {
            assert_eq!(worth(TokenUnits::new(value), TokenUnits::new(coin)).get(), wei, "{value} {coin}");
        }
    }

    #[test]
    fn gas_has_a_quarter_of_headroom() {
        for (estimate, limit) in [(21_000, 26_250), (3, 3), (u64::MAX, u64::MAX)] {
            assert_eq!(gas_limit(estimate), limit);
        }
    }
}
