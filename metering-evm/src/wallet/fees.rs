//! The gas price and gas limit of a transaction.

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

/// The gas limit of a transaction that would use `estimate` now: a quarter more, since earlier transactions may change
/// how much it uses.
pub(crate) const fn gas_limit(estimate: u64) -> u64 {
    estimate.saturating_add(estimate / 4)
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
    fn gas_has_a_quarter_of_headroom() {
        for (estimate, limit) in [(21_000, 26_250), (3, 3), (u64::MAX, u64::MAX)] {
            assert_eq!(gas_limit(estimate), limit);
        }
    }
}
