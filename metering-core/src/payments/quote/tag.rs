//! The tag: a small random amount added to a plan's price, so that a payment identifies its quote.

use crate::chains::units::TokenUnits;
use crate::random::Randomness;

/// The most decimals that a tag uses: people copy the amount, so it should not have eighteen.
const TAG_DECIMALS: u32 = 12;
/// The least number of different tags, if a hundredth of a token has room for that many.
const ENOUGH_TAGS: u128 = 9_999;
/// A tag is at most the price divided by this, if that leaves enough tags: nobody should pay noticeably more.
const PRICE_SHARE: u128 = 1_000;

/// One amount in this many is for top-up quotes, the others are for signup quotes.
const TOP_UP_SHARE: u128 = 4;

/// Which quotes an amount is for.
///
/// Anybody may request a signup quote in the name of any wallet, and a payment that pays it belongs to whoever did. So
/// no amount may ever belong to both kinds: somebody could request signup quotes in the name of a wallet until one of
/// them has the amount of the top-up that this wallet is about to pay. Which kind it is follows from the amount alone,
/// whatever the price was: every fourth step is for top-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TagKind {
    /// For a quote that creates an account.
    Signup,
    /// For a quote that tops up an account.
    TopUp,
}

/// The price plus a random tag, which is above zero and below a hundredth of a token. All tags of a kind are equally
/// likely.
///
/// `None` when the token has fewer than three decimals, so that no tag fits, or when the sum is out of range.
///
/// ```
/// use metering_core::SystemRandomness;
/// use metering_core::chains::TokenUnits;
/// use metering_core::payments::{TagKind, draw_amount};
///
/// let price = TokenUnits::new(5_000_000); // 5 of a token with 6 decimals
/// let amount = draw_amount(&SystemRandomness, price, 6, TagKind::Signup).unwrap();
/// assert!(amount > price && amount < TokenUnits::new(5_010_000) && amount.get() % 4 != 0);
/// let amount = draw_amount(&SystemRandomness, price, 6, TagKind::TopUp).unwrap();
/// assert_eq!(amount.get() % 4, 0);
/// ```
#[must_use]
pub fn draw_amount(randomness: &dyn Randomness, price: TokenUnits, decimals: u8, kind: TagKind) -> Option<TokenUnits> {
    let tags = Tags::on(price, decimals)?;
    let first = tags.first_top_up(price);
    let top_ups = (tags.steps.checked_sub(first)? / TOP_UP_SHARE).checked_add(1)?;
    let number = match kind {
        TagKind::TopUp => first.checked_add(below(randomness, top_ups)?.checked_mul(TOP_UP_SHARE)?)?,
        TagKind::Signup => nth_signup(first, below(randomness, tags.steps.checked_sub(top_ups)?)?)?,
    };
    let tag = number.checked_mul(tags.step)?;
    price.get().checked_add(tag).filter(|amount| *amount < u128::MAX).map(TokenUnits::new)
}

/// The number of steps of the signup tag at `place`, counted from zero, where `first` is the first one for top-ups.
fn nth_signup(first: u128, place: u128) -> Option<u128> {
    let before = first.checked_sub(1)?;
    match place.checked_sub(before) {
        None => place.checked_add(1),
        Some(after) => {
            let between = TOP_UP_SHARE - 1;
            let skipped = (after / between).checked_mul(TOP_UP_SHARE)?;
            first.checked_add(skipped)?.checked_add(after % between)?.checked_add(1)
        }
    }
}

/// Whether an amount is the price itself, or the price plus a possible tag.
pub(crate) fn may_be_tagged(price: TokenUnits, decimals: u8, amount: TokenUnits) -> bool {
    let largest = Tags::on(price, decimals).and_then(|tags| tags.steps.checked_mul(tags.step)).unwrap_or(0);
    amount.get().checked_sub(price.get()).is_some_and(|tag| tag <= largest)
}

/// The tags that a price can have: 1 to `steps` times `step`.
struct Tags {
    step: u128,
    steps: u128,
}

impl Tags {
    /// `None` when no tag fits.
    fn on(price: TokenUnits, decimals: u8) -> Option<Self> {
        let decimals = u32::from(decimals);
        let step = 10_u128.checked_pow(decimals.saturating_sub(TAG_DECIMALS))?;
        let room = 10_u128.checked_pow(decimals.checked_sub(2)?)?.checked_sub(1)? / step;
        Some(Self { step, steps: room.min((price.get() / PRICE_SHARE / step).max(ENOUGH_TAGS)) })
    }

    /// The least number of steps, 1 to 4, that makes an amount for top-ups: one that is divisible by four steps, apart
    /// from what is less than a step.
    const fn first_top_up(&self, price: TokenUnits) -> u128 {
        TOP_UP_SHARE - price.get() / self.step % TOP_UP_SHARE
    }
}

/// A uniformly random number below `bound`; `None` for a bound of zero.
fn below(randomness: &dyn Randomness, bound: u128) -> Option<u128> {
    // Numbers from the largest multiple of the bound upwards would make low results more likely.
    let fair_below = u128::MAX - u128::MAX.checked_rem(bound)?;
    loop {
        let mut bytes = [0; 16];
        randomness.fill(&mut bytes);
        let drawn = u128::from_le_bytes(bytes);
        if drawn < fair_below {
            return Some(drawn % bound);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::random::SystemRandomness;

    fn drawn(price: u128, decimals: u8, kind: TagKind) -> u128 {
        draw_amount(&SystemRandomness, TokenUnits::new(price), decimals, kind).unwrap().get()
    }

    #[test]
    fn tags_are_small_and_never_zero() {
        // price in units, decimals, largest tag
        let table: [(u128, u8, u128); 7] = [
            (5_000_000, 6, 9_999),
            (5_000_000_000, 6, 9_999),
            (10_000, 8, 9_999),
            (5_000, 3, 9),
            (500_000, 4, 99),
            // 0.0025 of an 18-decimal coin: a thousandth of that, in steps of 10^-12.
            (2_500_000_000_000_000, 18, 2_500_000_000_000),
            // A hundred of them: just below a hundredth of one.
            (100_000_000_000_000_000_000, 18, 9_999_999_999_000_000),
        ];
        for (price, decimals, largest) in table {
            for (_, kind) in (0..1_000).flat_map(|n| [(n, TagKind::Signup), (n, TagKind::TopUp)]) {
                let tag = drawn(price, decimals, kind) - price;
                assert!((1..=largest).contains(&tag), "{tag} on {price} with {decimals} decimals");
                assert!(tag < 10_u128.pow(u32::from(decimals) - 2), "a tag must be less than a hundredth of a token");
                assert!(may_be_tagged(TokenUnits::new(price), decimals, TokenUnits::new(price + tag)));
            }
            // amount, whether it may be that price
            let table = [(price, true), (price + largest, true), (price + largest + 1, false), (price - 1, false)];
            for (amount, expected) in table {
                let (price, amount) = (TokenUnits::new(price), TokenUnits::new(amount));
                assert_eq!(may_be_tagged(price, decimals, amount), expected, "{amount} for {price}");
            }
        }
    }

    #[test]
    fn amounts_out_of_range_are_not_drawn() {
        let highest = TokenUnits::new(u128::MAX - 1);
        for kind in [TagKind::Signup, TagKind::TopUp] {
            assert!((0..200).all(|_| draw_amount(&SystemRandomness, highest, 3, kind).is_none()));
        }
    }

    #[test]
    fn every_tag_is_drawn_for_one_kind_only() {
        for price in 5_000..5_008 {
            let tags = |kind| (0..2_000).map(|_| drawn(price, 3, kind) - price).collect::<HashSet<u128>>();
            let (signups, top_ups) = (tags(TagKind::Signup), tags(TagKind::TopUp));
            assert!(signups.is_disjoint(&top_ups), "{price}: {signups:?} {top_ups:?}");
            assert_eq!(signups.union(&top_ups).copied().collect::<HashSet<_>>(), (1..=9).collect(), "{price}");
        }
    }

    /// Two plans of one token may have prices so close that their amounts overlap.
    #[test]
    fn kind_follows_from_the_amount_alone() {
        let coin = 2_500_000_000_000_000;
        for (decimals, price, step) in
            [(6, 5_000_000, 1), (3, 5_000, 1), (18, coin, 1_000_000), (18, coin + 7, 1_000_000)]
        {
            for more in 0..12 {
                let price = price + more * step;
                for _ in 0..200 {
                    assert_eq!(drawn(price, decimals, TagKind::TopUp) / step % 4, 0);
                    assert_ne!(drawn(price, decimals, TagKind::Signup) / step % 4, 0);
                }
            }
        }
    }

    #[test]
    fn long_fractions_stay_readable() {
        for kind in [TagKind::Signup, TagKind::TopUp] {
            let human = TokenUnits::new(drawn(2_500_000_000_000_000, 18, kind)).to_human(18);
            assert!(human.len() <= "0.000000000000".len(), "{human}");
        }
    }

    #[test]
    fn tokens_without_room_for_a_tag_have_none() {
        for decimals in 0..=2 {
            for kind in [TagKind::Signup, TagKind::TopUp] {
                assert_eq!(draw_amount(&SystemRandomness, TokenUnits::new(500), decimals, kind), None);
                assert_eq!(draw_amount(&SystemRandomness, TokenUnits::MAX, 6, kind), None);
            }
            assert!(may_be_tagged(TokenUnits::new(500), decimals, TokenUnits::new(500)));
            assert!(!may_be_tagged(TokenUnits::new(500), decimals, TokenUnits::new(501)));
        }
    }
}
