//! Reproducible pseudo-random numbers: each is a pure function of its purpose and index.
//!
//! SplitMix64 (Steele, Lea and Flood, 2014) has published test vectors and gives the same results on every machine. It
//! is good enough for synthetic trades, but not for anything that must be hard to guess.

/// One, in millionths: the unit of all shares, swings and skews of the sample.
pub(crate) const MILLION: i64 = 1_000_000;

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The waves that make up [`drift`]: the binary logarithm of each wave's length in blocks, and its share in percent. At
/// twelve seconds per block, the longest lasts eighteen days and the shortest six minutes.
const WAVES: [(u32, i64); 4] = [(17, 55), (13, 28), (9, 12), (5, 5)];

/// A sequence of numbers determined by a seed.
#[derive(Debug, Clone)]
pub(crate) struct Draws {
    state: u64,
}

impl Draws {
    /// The numbers of the `index`-th item of a kind.
    pub(crate) const fn of(kind: u64, index: u64) -> Self {
        Self { state: mix(kind ^ mix(index)) }
    }

    /// The next number.
    pub(crate) const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// The next number, scaled below `bound`, which must not be zero.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        // Multiply and shift (Lemire, 2019). Its bias of at most 2^-32 × bound does not matter here.
        let scaled = (self.next() >> 32) * u64::from(bound);
        u32::try_from(scaled >> 32).expect("the high half of a product of two 32-bit numbers has 32 bits")
    }
}

const fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

/// A slowly moving value at block `number`, from -1 to 1 in millionths. Each `kind` has its own.
pub(crate) fn drift(kind: u64, number: u64) -> i64 {
    let sum: i64 = WAVES.iter().map(|(log_length, share)| wave(kind, *log_length, number) * share).sum();
    sum / 100
}

/// Linear interpolation between random points 2^`log_length` blocks apart.
fn wave(kind: u64, log_length: u32, number: u64) -> i64 {
    let step = number >> log_length;
    let within = (number - (step << log_length)).cast_signed();
    let (from, to) = (point(kind, log_length, step), point(kind, log_length, step + 1));
    from + (((to - from) * within) >> log_length)
}

fn point(kind: u64, log_length: u32, step: u64) -> i64 {
    const POINTS: u32 = 2_000_001;
    i64::from(Draws::of(kind.wrapping_add(u64::from(log_length)), step).below(POINTS)) - MILLION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vector_holds() {
        let mut draws = Draws { state: 1_234_567 };
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(expected.map(|_| draws.next()), expected);
    }

    #[test]
    fn draws_stay_below_their_bound_and_reach_every_value() {
        let mut draws = Draws::of(1, 2);
        let mut seen = [false; 7];
        for _ in 0..1_000 {
            seen[usize::try_from(draws.below(7)).unwrap()] = true;
        }
        assert_eq!(seen, [true; 7]);
        assert_eq!(draws.below(1), 0);
    }

    #[test]
    fn drift_moves_in_small_steps_within_its_bounds() {
        // The steepest slope that all waves together can have: each goes from one end to the other within its length.
        let steepest: i64 =
            WAVES.iter().map(|(log_length, share)| ((2 * MILLION * share / 100) >> log_length) + 1).sum();
        let (mut lowest, mut highest) = (MILLION, -MILLION);
        for number in 24_000_000..24_300_000 {
            let (here, next) = (drift(7, number), drift(7, number + 1));
            assert!((next - here).abs() <= steepest + 1, "{number}");
            lowest = lowest.min(here);
            highest = highest.max(here);
        }
        assert!(lowest >= -MILLION && highest <= MILLION && highest - lowest > MILLION / 5, "{lowest} {highest}");
        assert_ne!(drift(7, 24_000_000), drift(8, 24_000_000));
    }
}
