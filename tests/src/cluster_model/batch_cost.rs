//! Processor time of a commit, by the number of its accounts, from measured points.
#![expect(clippy::float_arithmetic, reason = "times of a model, not money")]

use std::str::FromStr;

/// Numbers of accounts, ascending from 1, with microseconds of processor time. There are at least two.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BatchCost {
    points: Vec<(f64, f64)>,
}

impl BatchCost {
    /// A straight line between two points. The last line continues.
    pub(super) fn micros(&self, accounts: f64) -> f64 {
        let above = self.points.partition_point(|(size, _)| *size < accounts).clamp(1, self.points.len() - 1);
        let ((from, least), (to, most)) = (self.points[above - 1], self.points[above]);
        least + (accounts - from) * (most - least) / (to - from)
    }

    pub(super) fn doubled(&self) -> Self {
        Self { points: self.points.iter().map(|(accounts, micros)| (*accounts, 2.0 * micros)).collect() }
    }
}

impl FromStr for BatchCost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| digits.parse::<u32>().map_err(|error| format!("{digits:?}: {error}"));
        let mut points = Vec::new();
        for point in text.split(',') {
            let (accounts, micros) =
                point.split_once(':').ok_or_else(|| format!("{point:?} is not ACCOUNTS:MICROSECONDS"))?;
            points.push((number(accounts)?, number(micros)?));
        }
        let begins = points.len() >= 2 && points[0].0 == 1;
        if !begins || !points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1) {
            return Err("expected two or more points, rising, the first of them for 1 account".to_owned());
        }
        Ok(Self { points: points.into_iter().map(|(accounts, micros)| (accounts.into(), micros.into())).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_a_line_between_points_and_after_the_last() {
        let cost: BatchCost = "1:1350,8:1700,64:3380".parse().unwrap();
        for (accounts, micros) in [(1.0, 1_350.0), (2.0, 1_400.0), (8.0, 1_700.0), (36.0, 2_540.0), (164.0, 6_380.0)] {
            assert_eq!(cost.micros(accounts), micros, "{accounts}");
        }
        assert_eq!(cost.doubled().micros(2.0), 2_800.0);
    }

    #[test]
    fn invalid_points_are_rejected() {
        for text in ["", "1:5", "1:5,8", "2:5,8:9", "1:5,1:6", "1:5,8:4", "1:5,x:6"] {
            assert!(text.parse::<BatchCost>().is_err(), "{text}");
        }
    }
}
