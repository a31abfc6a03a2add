//! The rule that chooses an upstream: the first step of the route that has one that works, and in it one by weight.
//! Upstreams that are out come last, so a request is never refused because all of them are.

use std::num::NonZeroU16;

/// Indices of upstreams, of which there are at most 64.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Indices(u64);

impl Indices {
    pub(super) fn contains(self, index: usize) -> bool {
        self.0 & bit(index) != 0
    }

    pub(super) fn insert(&mut self, index: usize) {
        self.0 |= bit(index);
    }
}

fn bit(index: usize) -> u64 {
    u32::try_from(index).ok().and_then(|index| 1_u64.checked_shl(index)).unwrap_or(0)
}

/// An upstream that a route names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) index: usize,
    pub(super) weight: NonZeroU16,
}

/// The index of the upstream to try next; `None` if all were tried. `find` finds an upstream by name, `out` are those that
/// should get no requests, and `turn` is a number that grows with each request.
pub(super) fn next(
    steps: &[Vec<String>],
    find: impl Fn(&str) -> Option<Candidate>,
    tried: Indices,
    out: Indices,
    turn: u64,
) -> Option<usize> {
    let find = &find;
    [false, true].into_iter().find_map(|is_out| {
        let is_meant =
            &|candidate: &Candidate| !tried.contains(candidate.index) && out.contains(candidate.index) == is_out;
        let of_step = |step: &Vec<String>| {
            let candidates = move || step.iter().filter_map(move |name| find(name)).filter(is_meant);
            by_weight(candidates, turn)
        };
        steps.iter().find_map(of_step)
    })
}

/// Chooses so that over many turns each has its share, and over few turns nearly so: the multiples of the golden ratio
/// are spread evenly.
fn by_weight<I: Iterator<Item = Candidate>>(candidates: impl Fn() -> I, turn: u64) -> Option<usize> {
    const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;
    let total: u64 = candidates().map(|candidate| u64::from(candidate.weight.get())).sum();
    let mut point = ((turn.wrapping_mul(GOLDEN_RATIO) >> 32) * total) >> 32;
    for candidate in candidates() {
        let weight = u64::from(candidate.weight.get());
        if point < weight {
            return Some(candidate.index);
        }
        point -= weight;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Upstreams by name, each with its weight.
    const ALL: [(&str, u16); 4] = [("a", 3), ("b", 1), ("c", 1), ("d", 100)];

    fn find(name: &str) -> Option<Candidate> {
        let index = ALL.iter().position(|(known, _)| *known == name)?;
        Some(Candidate { index, weight: NonZeroU16::new(ALL[index].1).unwrap() })
    }

    fn indices(names: &str) -> Indices {
        let mut indices = Indices::default();
        for name in names.chars() {
            indices.insert(find(&name.to_string()).expect("it exists").index);
        }
        indices
    }

    /// `"ab c"` are two steps.
    fn steps(text: &str) -> Vec<Vec<String>> {
        text.split(' ').map(|step| step.chars().map(|name| name.to_string()).collect()).collect()
    }

    /// The order in which a request tries them.
    fn order(text: &str, out: &str, turn: u64) -> String {
        let (steps, mut tried, mut order) = (steps(text), Indices::default(), String::new());
        while let Some(index) = next(&steps, find, tried, indices(out), turn) {
            tried.insert(index);
            order.push_str(ALL[index].0);
        }
        order
    }

    #[test]
    fn steps_are_tried_in_order_and_those_that_are_out_last() {
        // steps, which are out, order
        let table = [
            ("a", "", "a"),
            ("a", "a", "a"),
            ("a b c", "", "abc"),
            ("c b a", "", "cba"),
            ("a b c", "a", "bca"),
            ("a b c", "abc", "abc"),
            ("a b c", "ab", "cab"),
            ("a bc", "a", "bca"),
            ("x a", "", "a"),
            ("x", "", ""),
        ];
        for (steps, out, expected) in table {
            assert_eq!(order(steps, out, 0), expected, "{steps} {out}");
        }
    }

    #[test]
    fn upstreams_of_a_step_share_requests_by_weight() {
        let share = |text: &str, out: &str, name: &str, turns: std::ops::Range<u64>| {
            turns.filter(|turn| order(text, out, *turn).starts_with(name)).count()
        };
        for (name, expected) in [("a", 750), ("b", 250)] {
            let count = share("ab c", "", name, 0..1_000);
            assert!(count.abs_diff(expected) <= 3, "{name}: {count}");
        }
        // In any short run of requests, each gets about its share.
        for from in 0..100 {
            let count = share("ab", "", "b", from..from + 12);
            assert!((2..=4).contains(&count), "{from}: {count}");
        }
        assert_eq!(share("ab c", "a", "b", 0..100), 100, "the rest of the step gets all");
        assert_eq!(share("ab c", "ab", "c", 0..100), 100, "then comes the next step");
    }
}
