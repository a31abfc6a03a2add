//! `--columns` and `--sort`: the user's choice of columns and order.
//!
//! Set once per run. It applies to every table that the command prints.

use std::cmp::Reverse;
use std::sync::OnceLock;

use clap::Args;

use crate::failure::Failure;
use crate::table::column::Column;

/// Decimal places of the most exact numbers in tables: those of tokens.
const PLACES: usize = 18;

static CHOICE: OnceLock<Choice> = OnceLock::new();

/// The choice. By default, all columns, and rows as they come.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct Choice {
    /// Show only these columns of tables, in this order: their headings, separated by commas.
    #[arg(long, global = true, help_heading = "Output", value_name = "HEADINGS", value_delimiter = ',')]
    columns: Vec<String>,
    /// Sort tables by this column; with a hyphen before its heading, the largest first.
    #[arg(long, global = true, help_heading = "Output", value_name = "HEADING", allow_hyphen_values = true)]
    sort: Option<String>,
}

impl Choice {
    /// Sets this choice for the run.
    pub(crate) fn init(self) {
        // Called once, by `main`.
        let _ = CHOICE.set(self);
    }

    /// The choice of this run.
    pub(super) fn current() -> Self {
        CHOICE.get().cloned().unwrap_or_default()
    }

    /// The visible part of a table. Chosen columns are never hidden.
    pub(super) fn apply(
        &self,
        columns: &[Column],
        mut rows: Vec<Vec<String>>,
    ) -> Result<(Vec<Column>, Vec<Vec<String>>), Failure> {
        if let Some(sort) = &self.sort {
            let (heading, is_descending) = sort.strip_prefix('-').map_or((&**sort, false), |heading| (heading, true));
            let position = position(columns, heading)?;
            if is_descending {
                rows.sort_by_cached_key(|row| Reverse(Key::of(&row[position])));
            } else {
                rows.sort_by_cached_key(|row| Key::of(&row[position]));
            }
        }
        if self.columns.is_empty() {
            return Ok((columns.to_vec(), rows));
        }
        let positions = self.columns.iter().map(|heading| position(columns, heading));
        let positions = positions.collect::<Result<Vec<_>, _>>()?;
        let shown = positions.iter().map(|position| columns[*position].optional(0)).collect();
        let cells = |row: Vec<String>| positions.iter().map(|position| row[*position].clone()).collect();
        Ok((shown, rows.into_iter().map(cells).collect()))
    }
}

/// The position of the column with this heading.
fn position(columns: &[Column], heading: &str) -> Result<usize, Failure> {
    columns.iter().position(|column| plain(column.heading) == plain(heading)).ok_or_else(|| {
        let headings: Vec<&str> = columns.iter().map(|column| column.heading).collect();
        Failure::Usage(format!("the table has no column {heading:?}; it has {}", headings.join(", ")))
    })
}

/// A heading for comparison: case-insensitive, and with hyphens for spaces, which need no quoting in a shell.
fn plain(heading: &str) -> String {
    heading.trim().replace(['-', '_'], " ").to_uppercase()
}

/// The sort key of a cell: numbers by value, then amounts by unit and value, then texts.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Number(i128),
    /// An amount such as `5 USDC`; what follows its unit decides last.
    Amount {
        unit: String,
        value: i128,
        rest: String,
    },
    Text(String),
}

impl Key {
    fn of(cell: &str) -> Self {
        if let Some(number) = number(cell) {
            return Self::Number(number);
        }
        let amount = cell.split_once(' ').and_then(|(value, unit)| Some((number(value)?, unit)));
        let Some((value, unit)) = amount else { return Self::Text(cell.to_owned()) };
        // Some cells have a second amount: `5 USDC, 4.31 EUR`.
        let (unit, rest) = unit.split_once(", ").unwrap_or((unit, ""));
        Self::Amount { unit: unit.to_owned(), value, rest: rest.to_owned() }
    }
}

/// The value of a plain decimal number, in units of its last possible place.
fn number(text: &str) -> Option<i128> {
    let (integer, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_decimal = fraction.len() <= PLACES && fraction.bytes().all(|byte| byte.is_ascii_digit());
    // Without digits before the point, it is the hyphen for a missing value.
    let is_number = is_decimal && integer.ends_with(|last: char| last.is_ascii_digit());
    is_number.then(|| format!("{integer}{fraction:0<PLACES$}").parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] =
        &[Column::text("AGENT NAME"), Column::amount("BALANCE").optional(2), Column::time("LAST-USED")];

    fn chosen(columns: &[&str], sort: Option<&str>) -> Result<Vec<String>, Failure> {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        let rows = [["b", "10", "2026"], ["a", "-0.5", "-"], ["c", "9.25", "2025"], ["d", "-", "2024"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec()).to_vec();
        let (columns, rows) = Choice { columns, sort: sort.map(str::to_owned) }.apply(COLUMNS, rows)?;
        assert!(columns.iter().all(|column| column.rank == 0) || columns.len() == COLUMNS.len());
        Ok(rows.iter().map(|row| row.join(" ")).collect())
    }

    #[test]
    fn rows_are_sorted_by_value_and_columns_chosen_by_heading() {
        // columns, sort, rows
        let table: [(&[&str], Option<&str>, [&str; 4]); 5] = [
            (&[], None, ["b 10 2026", "a -0.5 -", "c 9.25 2025", "d - 2024"]),
            (&["balance"], Some("balance"), ["-0.5", "9.25", "10", "-"]),
            (&["last used", " Agent-Name"], Some("-Balance"), ["2024 d", "2026 b", "2025 c", "- a"]),
            (&["AGENT NAME"], Some("agent_name"), ["a", "b", "c", "d"]),
            (&["balance", "balance"], Some("last-used"), ["- -", "9.25 9.25", "10 10", "-0.5 -0.5"]),
        ];
        for (columns, sort, expected) in table {
            assert_eq!(chosen(columns, sort).unwrap(), expected, "{columns:?} {sort:?}");
        }
    }

    #[test]
    fn amounts_are_sorted_by_value_within_their_unit() {
        let mut cells =
            ["20 USDC", "5 USDC", "0.5 ETH", "-", "100", "5 USDC, 4.31 EUR", "10.5 ETH", "-1 USDC", "5 of 6"];
        cells.sort_by_cached_key(|cell| Key::of(cell));
        let expected =
            ["100", "0.5 ETH", "10.5 ETH", "-1 USDC", "5 USDC", "5 USDC, 4.31 EUR", "20 USDC", "5 of 6", "-"];
        assert_eq!(cells, expected);
    }

    #[test]
    fn unknown_columns_are_refused_with_those_that_there_are() {
        for (columns, sort) in [(vec!["balances"], None), (vec![], Some("balances")), (vec!["balance", ""], None)] {
            let Err(Failure::Usage(text)) = chosen(&columns, sort) else { panic!("{columns:?} {sort:?}") };
            assert!(text.ends_with("it has AGENT NAME, BALANCE, LAST-USED"), "{text}");
        }
    }
}
