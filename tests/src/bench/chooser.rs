//! Chooses the account for the next charge.

use std::fmt;

use super::random::SplitMix64;

/// How charges are spread over accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spread {
    /// All accounts are equally busy. This touches the most distinct rows per batch, so it is the worst case.
    Uniform,
    /// The n-th busiest account has 1/n of the busiest one's charges (Zipf's law with exponent 1).
    Zipf,
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Uniform => "uniform",
            Self::Zipf => "Zipf",
        })
    }
}

/// SplitMix64 accounts by their index in a list.
#[derive(Debug)]
pub(super) struct Chooser {
    draws: SplitMix64,
    accounts: usize,
    zipf: Option<Ranks>,
}

/// The accounts by descending share, and the cumulative sum of the shares.
#[derive(Debug)]
struct Ranks {
    account_of_rank: Vec<usize>,
    share_up_to_rank: Vec<f64>,
}

impl Chooser {
    pub(super) fn new(spread: Spread, accounts: usize, seed: u64) -> Self {
        let mut draws = SplitMix64::new(seed);
        let zipf = (spread == Spread::Zipf).then(|| Ranks::new(accounts, &mut draws));
        Self { draws, accounts, zipf }
    }

    pub(super) fn next(&mut self) -> usize {
        match &self.zipf {
            None => self.draws.below(self.accounts),
            Some(ranks) => ranks.account_at(self.draws.fraction()),
        }
    }
}

#[expect(clippy::float_arithmetic, reason = "probabilities, not money")]
impl Ranks {
    fn new(accounts: usize, draws: &mut SplitMix64) -> Self {
        // The busiest accounts must not be the oldest ones, which share pages.
        let mut account_of_rank: Vec<usize> = (0..accounts).collect();
        draws.shuffle(&mut account_of_rank);
        let mut sum = 0.0;
        let mut share_up_to_rank: Vec<f64> = (1..=accounts)
            .map(|rank| {
                sum += 1.0 / rank as f64;
                sum
            })
            .collect();
        share_up_to_rank.iter_mut().for_each(|share| *share /= sum);
        Self { account_of_rank, share_up_to_rank }
    }

    fn account_at(&self, fraction: f64) -> usize {
        let rank = self.share_up_to_rank.partition_point(|share| *share <= fraction);
        self.account_of_rank[rank.min(self.account_of_rank.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(spread: Spread, accounts: usize) -> Vec<u32> {
        let (mut chooser, mut counts) = (Chooser::new(spread, accounts, 7), vec![0; accounts]);
        for _ in 0..200_000 {
            counts[chooser.next()] += 1;
        }
        counts
    }

    #[test]
    fn a_uniform_choice_is_even() {
        let counts = counts(Spread::Uniform, 100);
        // 2,000 expected, standard deviation 45: within six of those.
        assert!(counts.iter().all(|count| (1_730..=2_270).contains(count)), "{counts:?}");
    }

    #[test]
    fn zipf_share_falls_with_rank() {
        let mut counts = counts(Spread::Zipf, 1_000);
        assert!(!counts.is_sorted_by(|a, b| a >= b), "the busiest are not the first");
        counts.sort_unstable_by(|a, b| b.cmp(a));
        // The 1,000th harmonic number is 7.4855, so the busiest account gets 26,718 of 200,000.
        // rank, expected, six standard deviations
        for (rank, expected, tolerance) in [(1, 26_718, 920), (2, 13_359, 680), (10, 2_672, 320), (100, 267, 100)] {
            let count = counts[rank - 1];
            assert!(count.abs_diff(expected) <= tolerance, "rank {rank}: {count}");
        }
    }

    #[test]
    fn one_account_is_always_chosen() {
        for spread in [Spread::Uniform, Spread::Zipf] {
            assert_eq!(counts(spread, 1), [200_000]);
        }
    }

    #[test]
    fn range_ends_map_to_first_and_last_rank() {
        let ranks = Ranks::new(3, &mut SplitMix64::new(1));
        assert_eq!(ranks.account_at(0.0), ranks.account_of_rank[0]);
        assert_eq!(ranks.account_at(0.9999), ranks.account_of_rank[2]);
        assert_eq!(ranks.account_at(1.0), ranks.account_of_rank[2]);
    }
}
