//! Tables and values for people: aligned, without borders. On a terminal they fit its width, and states have their
//! colour; everywhere else, and with `--wide`, everything is shown in full.
//!
//! One style: headings of columns are in capitals, labels of single values in sentence case ("Agent name").

mod choice;
mod column;
mod layout;
mod short;

use std::fmt::Display;
use std::io::Write;

use metering_core::{Clock, SystemClock};

use crate::failure::Failure;
use crate::screen::Screen;
pub(crate) use choice::Choice;
pub(crate) use column::Column;
pub(crate) use layout::Layout;
use layout::{Room, lay_out};

/// Writes a table with one row per item: its columns, each with the function for its cell.
///
/// ```text
/// table!(out, &accounts, |account| {
///     id("ACCOUNT") => account.org_id,
///     text("NAME").optional(1) => account.agent_name,
/// })
/// ```
macro_rules! table {
    ($out:expr, $items:expr, |$item:pat_param| {
        $($kind:ident($heading:literal) $(.optional($rank:literal))? => $cell:expr,)+
    }) => {{
        const COLUMNS: &[$crate::table::Column] = &[$($crate::table::Column::$kind($heading)$(.optional($rank))?),+];
        let mut table = $crate::table::Table::new(COLUMNS);
        for $item in $items {
            table.row([$(&$cell),+]);
        }
        table.write($out)
    }};
}

pub(crate) use table;

/// A table being filled.
#[derive(Debug)]
pub(crate) struct Table {
    columns: &'static [Column],
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) const fn new(columns: &'static [Column]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row, one cell per column.
    pub(crate) fn row<const N: usize>(&mut self, cells: [&dyn Display; N]) {
        assert_eq!(N, self.columns.len(), "a row has one cell per column");
        let shown = cells.iter().zip(self.columns).map(|(cell, column)| column.shown(printable(&cell.to_string())));
        self.rows.push(shown.collect());
    }

    /// Writes the table, fitted to the terminal, with a note if that hid or shortened anything. Without rows, it
    /// writes only the headings.
    ///
    /// # Errors
    /// If the user chose a column that the table does not have.
    pub(crate) fn write(self, out: &mut dyn Write) -> Result<(), Failure> {
        let (columns, rows) = Choice::current().apply(self.columns, self.rows)?;
        let layout = fitted(&columns, &rows, Screen::current());
        for line in &layout.lines {
            writeln!(out, "{line}")?;
        }
        match layout.note() {
            Some(note) => Ok(writeln!(out, "{note}")?),
            None => Ok(()),
        }
    }

    /// The table as lines, for a caller that adds something to them: with all columns, and the rows in their order.
    pub(crate) fn layout(&self, screen: Screen) -> Layout {
        fitted(self.columns, &self.rows, screen)
    }
}

fn fitted(columns: &[Column], rows: &[Vec<String>], screen: Screen) -> Layout {
    let (now, ellipsis, colour) = (SystemClock.now(), screen.ellipsis(), screen.colour);
    lay_out(columns, rows, Room { columns: screen.table_columns(), now, ellipsis, colour })
}

/// Writes labels and values, one pair per line.
pub(crate) fn write_pairs(out: &mut dyn Write, pairs: &[(&str, &dyn Display)]) -> Result<(), Failure> {
    debug_assert!(pairs.iter().all(|(label, _)| !label.starts_with(char::is_lowercase)), "labels begin with a capital");
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in pairs {
        writeln!(out, "{name:width$}  {}", printable(&value.to_string()))?;
    }
    Ok(())
}

/// A text without control characters, so that stored text cannot control the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_right_aligned_without_trailing_spaces() {
        const COLUMNS: &[Column] = &[Column::text("NAME"), Column::amount("CREDITS"), Column::text("NOTE")];
        let mut table = Table::new(COLUMNS);
        table.row([&"a", &"1.5", &"x"]);
        table.row([&"longer", &"-1234567.25", &""]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "NAME        CREDITS  NOTE\na               1.5  x\nlonger  -1234567.25\n");
    }

    #[test]
    fn states_are_in_words() {
        const COLUMNS: &[Column] = &[Column::state("STATE"), Column::text("NAME")];
        let mut table = Table::new(COLUMNS);
        table.row([&"in_force", &"my_agent"]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "STATE     NAME\nin force  my_agent\n");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let mut out = Vec::new();
        write_pairs(&mut out, &[("Note", &"\u{1b}[2Jgone\nnext")]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "Note  \u{fffd}[2Jgone\u{fffd}next\n");
    }
}
