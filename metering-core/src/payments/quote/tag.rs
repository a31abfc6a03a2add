//! The tag: a small random amount added to a plan's price, so a payment identifies its quote.

use crate::chains::units::TokenUnits;
use crate::random::Randomness;

/// The most decimals that a tag uses: people copy the amount, so it should not have eighteen.
const TAG_DECIMALS: u32 = 12;
/// The least number of different tags, if a hundredth of a token has room for that many.
const ENOUGH_TAGS: u128 = 9_999;
/// A tag is at most the price divided by this, if that leaves enough tags: the payer should not notice the difference.
const PRICE_SHARE: u128 = 1_000;

/// One amount in this many is for top-up quotes, the others are for signup quotes.
const TOP_UP_SHARE: u128 = 4;
/// An amount that is divisible by this, in steps, ends in a zero.
const BASE: u128 = 10;
/// Which amounts are drawn repeats after this many steps: the least common multiple of the two above.
const PERIOD: u128 = 20;

/// Which quotes an amount is for.
///
/// Anyone may request a signup quote in the name of any wallet, and its payment belongs to the requester. So the two
/// kinds must never share an amount: an attacker could request signup quotes for a wallet until one has the amount of
/// the top-up that this wallet is about to pay. The amount alone decides the kind, whatever the price was: every fourth
/// step is for top-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TagKind {
    /// For a quote that creates an account.
    Signup,
    /// For a quote that tops up an account.
    TopUp,
}

impl TagKind {
    /// Whether an amount of this many steps is drawn for this kind.
    fn takes(self, steps: u128) -> bool {
        !steps.is_multiple_of(BASE) && steps.is_multiple_of(TOP_UP_SHARE) == (self == Self::TopUp)
    }
}

/// The price plus a random tag, which is above zero and below a hundredth of a token. All tags of a kind are equally
/// likely. The last digit that a tag can have is never zero: wallets show "5.003810" as "5.00381", and people round.
///
/// `None` when the token has fewer than three decimals, so no tag fits, or when the sum is out of range.
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
/// assert!(amount.get() % 4 == 0 && amount.get() % 10 != 0);
/// ```
#[must_use]
pub fn draw_amount(randomness: &dyn Randomness, price: TokenUnits, decimals: u8, kind: TagKind) -> Option<TokenUnits> {
    let tags = Tags::on(price, decimals)?;
    // Whether a number of steps is drawn depends on the sum's last digits alone, so it repeats.
    let before = price.get() / tags.step % PERIOD;
    let drawn = || (1..=PERIOD).filter(|number| kind.takes(before + number));
    let count = |numbers: u128| u128::try_from(drawn().filter(|number| *number <= numbers).count()).ok();
    let per_period = count(PERIOD)?;
    let all = (tags.steps / PERIOD).checked_mul(per_period)?.checked_add(count(tags.steps % PERIOD)?)?;
    let place = below(randomness, all)?;
    let last = drawn().nth(usize::try_from(place % per_period).ok()?)?;
    let tag = (place / per_period).checked_mul(PERIOD)?.checked_add(last)?.checked_mul(tags.step)?;
    price.get().checked_add(tag).filter(|amount| *amount < u128::MAX).map(TokenUnits::new)
}

/// Whether [`draw_amount`] can draw this amount.
pub(crate) fn may_be_drawn(price: TokenUnits, decimals: u8, kind: TagKind, amount: TokenUnits) -> bool {
    let steps = |tags: Tags| Some((amount.get().checked_sub(price.get())?, tags.step, amount.get() / tags.step));
    let drawn = Tags::on(price, decimals).and_then(steps);
    may_be_tagged(price, decimals, amount)
        && drawn.is_some_and(|(tag, step, units)| tag > 0 && tag % step == 0 && kind.takes(units))
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
            let readable = (1..=9).filter(|tag| (price + tag) % 10 != 0);
            assert_eq!(signups.union(&top_ups).copied().collect::<HashSet<_>>(), readable.collect(), "{price}");
        }
    }

    /// Wallets leave out zeros at the end, and people round.
    #[test]
    fn drawn_amounts_never_end_in_a_zero() {
        for (price, decimals, step) in [(5_000_000, 6, 1), (5_004, 3, 1), (2_500_000_000_000_000, 18, 1_000_000)] {
            for kind in [TagKind::Signup, TagKind::TopUp] {
                let amounts: HashSet<u128> = (0..2_000).map(|_| drawn(price, decimals, kind)).collect();
                for amount in amounts {
                    assert_ne!(amount / step % 10, 0, "{amount}");
                    let is_drawn = |kind| may_be_drawn(TokenUnits::new(price), decimals, kind, TokenUnits::new(amount));
                    assert_eq!(
                        [TagKind::Signup, TagKind::TopUp].map(is_drawn),
                        [TagKind::Signup, TagKind::TopUp].map(|one| one == kind),
                        "{amount}"
                    );
                }
            }
        }
        // amount for a price of 5 tokens with 6 decimals, whether a top-up quote may have it
        for (amount, expected) in [
            (5_000_000, false),
            (5_000_004, true),
            (5_000_020, false),
            (5_009_996, true),
            (5_010_004, false),
            (4_999_996, false),
        ] {
            let (price, amount) = (TokenUnits::new(5_000_000), TokenUnits::new(amount));
            assert_eq!(may_be_drawn(price, 6, TagKind::TopUp, amount), expected, "{amount}");
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
