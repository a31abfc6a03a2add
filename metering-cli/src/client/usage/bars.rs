//! The bars next to the days, to compare them at a glance.
//!
//! Lengths are proportional to amounts, computed in integers from the amounts' text.

use crate::client::money::amount::Amount;
use crate::screen::Screen;

/// Longer bars add nothing.
const CELLS_MAX: usize = 60;
/// Shorter bars are not shown.
const CELLS_MIN: usize = 4;
/// The space between the table and the bars.
const GAP: usize = 2;

/// A cell of a bar, filled by 0 to 8 eighths.
const EIGHTHS: [&str; 9] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/// Bars on one scale.
#[derive(Debug)]
pub(super) struct Bars {
    screen: Screen,
    cells: usize,
    longest: u128,
}

impl Bars {
    /// Bars next to a table of this width; the longest is for the largest amount.
    pub(super) fn new<'a>(screen: Screen, table: usize, amounts: impl Iterator<Item = &'a Amount>) -> Self {
        let cells = screen.columns.saturating_sub(table + GAP).min(CELLS_MAX);
        let cells = if cells < CELLS_MIN { 0 } else { cells };
        Self { screen, cells, longest: amounts.map(magnitude).max().unwrap_or(0) }
    }

    /// The bar of an amount; empty if it is zero or below, or if there is no room for bars.
    pub(super) fn bar(&self, amount: &Amount) -> String {
        let part = magnitude(amount);
        if part == 0 || self.cells == 0 {
            return String::new();
        }
        let steps_per_cell = if self.screen.blocks { 8 } else { 1 };
        let max_steps = self.cells * steps_per_cell;
        // Every amount above zero is visible, however small.
        let steps = usize::try_from(scaled(part, max_steps, self.longest)).unwrap_or(max_steps).clamp(1, max_steps);
        let bar = if self.screen.blocks {
            format!("{}{}", "█".repeat(steps / 8), EIGHTHS[steps % 8])
        } else {
            "#".repeat(steps)
        };
        if self.screen.colour { format!("\u{1b}[32m{bar}\u{1b}[0m") } else { bar }
    }
}

/// `part` × `max_steps` / `longest`, for amounts that may be absurdly large.
fn scaled(part: u128, max_steps: usize, longest: u128) -> u128 {
    let max_steps = max_steps as u128;
    part.checked_mul(max_steps).map_or_else(|| part / (longest / max_steps).max(1), |product| product / longest.max(1))
}

/// The amount in its smallest decimal unit: zero if it is below zero, the maximum if it is too large.
fn magnitude(amount: &Amount) -> u128 {
    u128::try_from(amount.units()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Amount {
        serde_json::from_str(text).unwrap()
    }

    fn bars(columns: usize, blocks: bool, amounts: &[&str]) -> Vec<String> {
        let amounts: Vec<_> = amounts.iter().map(|text| amount(text)).collect();
        let bars = Bars::new(Screen { columns, blocks, ..Screen::current() }, 10, amounts.iter());
        amounts.iter().map(|amount| bars.bar(amount)).collect()
    }

    #[test]
    fn bar_lengths_are_relative_to_the_largest() {
        assert_eq!(
            bars(20, false, &["8", "4", "1", "0", "0.0000000001", "-2"]),
            ["########", "####", "#", "", "#", ""]
        );
        assert_eq!(bars(20, true, &["8", "4.5", "0.125", "0.0000694444"]), ["████████", "████▌", "▏", "▏"]);
        assert_eq!(bars(20, true, &["0", "0"]), ["", ""]);
    }

    #[test]
    fn bars_fit_any_width() {
        for columns in [0, 1, 11, 15] {
            assert_eq!(bars(columns, true, &["1"]), [""], "{columns}");
        }
        assert_eq!(bars(16, false, &["1"]), ["####"]);
        assert_eq!(bars(10_000, false, &["1"])[0].len(), CELLS_MAX);
    }

    #[test]
    fn absurd_amounts_do_not_panic() {
        let nines = "9".repeat(60);
        let found = bars(20, false, &[&nines, "1", "123456789012345678.1234567891"]);
        assert_eq!((found[0].len(), found[1].len()), (8, 1));
        assert_eq!(bars(20, false, &["0.00000000009", "1e0".trim_end_matches("e0")])[0], "");
    }

    #[test]
    fn colours_are_reset() {
        let one = amount("1");
        let screen = Screen { columns: 16, colour: true, ..Screen::current() };
        let bars = Bars::new(screen, 10, std::iter::once(&one));
        assert_eq!(bars.bar(&one), "\u{1b}[32m####\u{1b}[0m");
    }
}
