//! Random draws that are the same in every run.

/// Fixed, so that every run chooses the same accounts.
pub(super) const SEED: u64 = 20_261_121;

/// Uniform draws from a seed: SplitMix64 (Steele, Lea and Flood, 2014). It is small, fast, and even enough for picking
/// accounts; nothing here is secret.
#[derive(Debug, Clone)]
pub(crate) struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`. The bias is `bound` / 2⁶⁴, too small to affect a benchmark.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "the bound must be above zero");
        let scaled = (u128::from(self.next()) * bound as u128) >> 64;
        usize::try_from(scaled).expect("less than the bound")
    }

    /// A number from 0 (inclusive) to 1 (exclusive).
    #[expect(clippy::float_arithmetic, reason = "a probability, not money")]
    pub(crate) fn fraction(&mut self) -> f64 {
        const STEPS_LOG2: u32 = f64::MANTISSA_DIGITS;
        (self.next() >> (u64::BITS - STEPS_LOG2)) as f64 / (1_u64 << STEPS_LOG2) as f64
    }

    /// Shuffles; every order is equally likely (Fisher and Yates).
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_published_sequence() {
        let mut draws = SplitMix64::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| draws.next()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn draws_are_uniform() {
        let (mut draws, mut counts) = (SplitMix64::new(1), [0_u32; 10]);
        for _ in 0..100_000 {
            counts[draws.below(10)] += 1;
        }
        // 10,000 expected, standard deviation 95: within six of those.
        assert!(counts.iter().all(|count| (9_430..=10_570).contains(count)), "{counts:?}");
        assert!((0..1_000).all(|_| (0.0..1.0).contains(&draws.fraction())));
    }

    #[test]
    fn shuffle_keeps_all_items_and_moves_most() {
        let mut items: Vec<usize> = (0..1_000).collect();
        SplitMix64::new(1).shuffle(&mut items);
        let moved = items.iter().enumerate().filter(|(index, item)| index != *item).count();
        assert!(moved > 900, "{moved}");
        items.sort_unstable();
        assert_eq!(items, (0..1_000).collect::<Vec<_>>());
    }
}
