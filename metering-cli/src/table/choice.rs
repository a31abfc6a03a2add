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

/// The sort key of a cell: numbers by value, before texts.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Number(i128),
    Text(String),
}

impl Key {
    fn of(cell: &str) -> Self {
        let (integer, fraction) = cell.split_once('.').unwrap_or((cell, ""));
        let is_number = fraction.len() <= PLACES && fraction.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_number.then(|| format!("{integer}{fraction:0<PLACES$}").parse().ok()).flatten();
        // Without digits before the point, it is the hyphen for a missing value.
        let number = number.filter(|_| integer.ends_with(|last: char| last.is_ascii_digit()));
        number.map_or_else(|| Self::Text(cell.to_owned()), Self::Number)
    }
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
    fn unknown_columns_are_refused_with_those_that_there_are() {
        for (columns, sort) in [(vec!["balances"], None), (vec![], Some("balances")), (vec!["balance", ""], None)] {
            let Err(Failure::Usage(text)) = chosen(&columns, sort) else { panic!("{columns:?} {sort:?}") };
            assert!(text.ends_with("it has AGENT NAME, BALANCE, LAST-USED"), "{text}");
        }
    }
}
