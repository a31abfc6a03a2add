//! Tables for people: aligned, without colours or borders, so that they look the same in a terminal, a pipe and an
//! email.

use std::fmt::Display;
use std::io::Write;

use comfy_table::{Cell, CellAlignment, presets};

use crate::failure::Failure;

/// A column's heading, and how its cells are aligned.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column {
    /// Text, left-aligned.
    Text(&'static str),
    /// Numbers, right-aligned.
    Number(&'static str),
}

/// A table being filled.
#[derive(Debug)]
pub(crate) struct Table {
    columns: &'static [Column],
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(columns: &'static [Column]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row, one cell per column.
    pub(crate) fn row<const N: usize>(&mut self, cells: [&dyn Display; N]) {
        assert_eq!(N, self.columns.len(), "a row has one cell per column");
        self.rows.push(cells.map(|cell| Cell::new_owned(printable(&cell.to_string()))).into());
    }

    /// Writes the table. A table without rows has only headings.
    pub(crate) fn write(self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(self.columns.iter().map(|column| match column {
            Column::Text(heading) | Column::Number(heading) => Cell::new(heading),
        }));
        table.add_rows(self.rows);
        for (column, side) in table.column_iter_mut().zip(self.columns) {
            column.set_padding((0, 2));
            column.set_cell_alignment(match side {
                Column::Text(_) => CellAlignment::Left,
                Column::Number(_) => CellAlignment::Right,
            });
        }
        for line in table.lines() {
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Writes names and values, one pair per line.
pub(crate) fn write_pairs(out: &mut dyn Write, pairs: &[(&str, &dyn Display)]) -> Result<(), Failure> {
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
        let mut table = Table::new(&[Column::Text("NAME"), Column::Number("CREDITS"), Column::Text("NOTE")]);
        table.row([&"a", &"1.5", &"x"]);
        table.row([&"longer", &"-1234567.25", &""]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "NAME        CREDITS  NOTE\na               1.5  x\nlonger  -1234567.25\n");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let mut out = Vec::new();
        write_pairs(&mut out, &[("note", &"\u{1b}[2Jgone\nnext")]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "note  \u{fffd}[2Jgone\u{fffd}next\n");
    }
}
