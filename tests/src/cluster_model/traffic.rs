//! Which accounts are charged how often, and in which groups they are.
#![expect(clippy::float_arithmetic, reason = "rates of a model, not money")]

use super::arguments::Arguments;
use crate::bench::random::SplitMix64;

/// The accounts that are looked at one by one: all others hardly ever have two charges in one commit.
const RANKED: u64 = 10_000;

/// Charges over accounts by rank: the hottest is 1, the others follow Zipf's law.
#[derive(Debug)]
pub(super) struct Traffic {
    charges_per_micro: f64,
    groups: usize,
    accounts: u64,
    /// Of the ranked accounts.
    shares: Vec<f64>,
    share_up_to_rank: Vec<f64>,
    tail: Tail,
}

/// Zipf's law after the ranked accounts, as an integral.
#[derive(Debug)]
struct Tail {
    from: f64,
    to: f64,
    exponent: f64,
}

/// What arrives at a group, in charges per microsecond.
#[derive(Debug)]
pub(super) struct GroupTraffic {
    of_ranked: Vec<f64>,
    of_others: f64,
}

impl Traffic {
    pub(super) fn new(arguments: &Arguments) -> Self {
        let ranked = arguments.accounts.min(RANKED);
        let exponent = arguments.zipf_exponent;
        let tail = Tail { from: ranked as f64 + 0.5, to: arguments.accounts as f64 + 0.5, exponent };
        let weights: Vec<f64> = (2..=ranked).map(|rank| (rank as f64).powf(-exponent)).collect();
        let sum = weights.iter().sum::<f64>() + tail.area();
        let hottest = if arguments.accounts == 1 { 1.0 } else { arguments.hottest_share };
        let others = weights.iter().map(|weight| (1.0 - hottest) * weight / sum);
        let shares: Vec<f64> = [hottest].into_iter().chain(others).collect();
        let mut total = 0.0_f64;
        let up_to = |share: &f64| {
            total += *share;
            total
        };
        let share_up_to_rank = shares.iter().map(up_to).collect();
        let charges_per_micro = arguments.charges_per_second as f64 / 1e6;
        let (groups, accounts) = (arguments.groups, arguments.accounts);
        Self { charges_per_micro, groups, accounts, shares, share_up_to_rank, tail }
    }

    /// The account, by rank, up to which this fraction of the charges goes.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank; casts saturate")]
    pub(super) fn rank_at(&self, fraction: f64) -> u64 {
        let index = self.share_up_to_rank.partition_point(|share| *share <= fraction);
        let (ranked, share) = (self.shares.len() as u64, self.ranked_share());
        if index < self.shares.len() || self.accounts == ranked {
            return (index as u64 + 1).min(ranked);
        }
        let rank = self.tail.at((fraction - share) / (1.0 - share)).round();
        (rank as u64).clamp(ranked + 1, self.accounts)
    }

    /// By the CRC-32 of the account's id, as in ADR 56. Ids are random; here the rank is the seed.
    pub(super) fn group_of(&self, rank: u64) -> usize {
        crc32fast::hash(&SplitMix64::new(rank).next().to_le_bytes()) as usize % self.groups
    }

    /// Time until the next charge, if charges are independent of each other.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 0; casts saturate")]
    pub(super) fn gap_nanos(&self, fraction: f64) -> u64 {
        (-(1.0 - fraction).ln() * 1e3 / self.charges_per_micro).round() as u64
    }

    pub(super) fn by_group(&self) -> Vec<GroupTraffic> {
        let others = (1.0 - self.ranked_share()).max(0.0) * self.charges_per_micro / self.groups as f64;
        let empty = || GroupTraffic { of_ranked: Vec::new(), of_others: others };
        let mut groups: Vec<GroupTraffic> = (0..self.groups).map(|_| empty()).collect();
        for (share, rank) in self.shares.iter().zip(1..) {
            groups[self.group_of(rank)].of_ranked.push(share * self.charges_per_micro);
        }
        groups
    }

    fn ranked_share(&self) -> f64 {
        self.share_up_to_rank.last().copied().unwrap_or_default()
    }
}

impl Tail {
    fn area(&self) -> f64 {
        let power = 1.0 - self.exponent;
        if power.abs() < 1e-9 {
            return (self.to / self.from).ln();
        }
        (self.to.powf(power) - self.from.powf(power)) / power
    }

    /// The rank before which this fraction of the area is.
    fn at(&self, fraction: f64) -> f64 {
        let power = 1.0 - self.exponent;
        if power.abs() < 1e-9 {
            return self.from * (self.to / self.from).powf(fraction);
        }
        let (first, last) = (self.from.powf(power), self.to.powf(power));
        (first + fraction * (last - first)).powf(1.0 / power)
    }
}

impl GroupTraffic {
    pub(super) fn charges_per_micro(&self) -> f64 {
        self.of_ranked.iter().sum::<f64>() + self.of_others
    }

    /// How many different accounts are charged in this time.
    pub(super) fn accounts_in(&self, micros: f64) -> f64 {
        let is_charged = |rate: &f64| -(-rate * micros).exp_m1();
        self.of_ranked.iter().map(is_charged).sum::<f64>() + self.of_others * micros
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn traffic(line: &str) -> Traffic {
        Traffic::new(&Arguments::try_parse_from(line.split(' ')).unwrap())
    }

    #[test]
    fn hash_spreads_accounts_evenly_over_groups() {
        let (traffic, mut counts) = (traffic("model --groups 128"), [0_u32; 128]);
        for rank in 1..=128_000 {
            counts[traffic.group_of(rank)] += 1;
        }
        // 1,000 expected, standard deviation 32: within six of those.
        assert!(counts.iter().all(|count| (810..=1_190).contains(count)), "{counts:?}");
    }

    #[test]
    fn shares_follow_zipf_after_the_hottest() {
        let traffic = traffic("model --accounts 1000 --hottest-share 0.5");
        // The 1,000th harmonic number is 7.4855, so the second has 0.5 / 2 / 6.4855.
        for (rank, share) in [(1, 0.5), (2, 0.038_548), (10, 0.007_710), (1_000, 0.000_077)] {
            assert!((traffic.shares[rank - 1] - share).abs() < 1e-6, "rank {rank}: {}", traffic.shares[rank - 1]);
        }
        assert_eq!([0.0, 0.499, 0.501, 1.0].map(|fraction| traffic.rank_at(fraction)), [1, 1, 2, 1_000]);
    }

    #[test]
    fn accounts_after_the_ranked_ones_share_the_rest() {
        for exponent in ["0", "0.8", "1", "1.3"] {
            let line = format!("model --accounts 40000 --zipf-exponent {exponent} --hottest-share 0.1");
            let traffic = traffic(&line);
            let power: f64 = exponent.parse().unwrap();
            let weight =
                |ranks: std::ops::RangeInclusive<u32>| ranks.map(|rank| f64::from(rank).powf(-power)).sum::<f64>();
            let expected = 0.1 + 0.9 * weight(2..=20_000) / weight(2..=40_000);
            let rank = traffic.rank_at(expected);
            assert!(rank.abs_diff(20_000) <= 20, "exponent {exponent}: {rank}");
            let total: f64 = traffic.by_group().iter().map(GroupTraffic::charges_per_micro).sum();
            assert!((total - 1.0).abs() < 1e-9, "exponent {exponent}: {total}");
        }
    }
}
