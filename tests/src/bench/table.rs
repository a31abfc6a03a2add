//! Markdown tables, padded so that they are readable as plain text too.

use std::io::{self, Write};
use std::time::Duration;

use super::format;
use super::sample::Sample;
use super::turns::Ratio;

/// A column's heading and alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    /// Words, left-aligned.
    Text(&'static str),
    /// Figures, right-aligned.
    Number(&'static str),
}

/// A row being filled: each cell with the heading of its column.
#[derive(Debug, Default)]
pub(crate) struct Row {
    columns: Vec<Column>,
    cells: Vec<String>,
}

impl Row {
    fn cell(mut self, column: Column, cell: String) -> Self {
        self.columns.push(column);
        self.cells.push(cell);
        self
    }

    pub(crate) fn text(self, heading: &'static str, text: impl Into<String>) -> Self {
        self.cell(Column::Text(heading), text.into())
    }

    pub(crate) fn number(self, heading: &'static str, number: String) -> Self {
        self.cell(Column::Number(heading), number)
    }

    pub(crate) fn count(self, heading: &'static str, count: usize) -> Self {
        self.number(heading, format::count(count))
    }

    pub(crate) fn rate(self, heading: &'static str, per_second: f64) -> Self {
        self.number(heading, format::rate(per_second))
    }

    pub(crate) fn latency(self, heading: &'static str, latency: Option<Duration>) -> Self {
        self.number(heading, format::latency(latency))
    }

    pub(crate) fn size(self, heading: &'static str, bytes: Option<u64>) -> Self {
        self.number(heading, bytes.map_or_else(|| format::NONE.to_owned(), format::size))
    }

    /// The median of a ratio, and those of all rounds.
    pub(super) fn ratio(self, heading: &'static str, ratio: Option<Ratio>) -> Self {
        self.number(heading, Ratio::median_text(ratio)).number("Of all rounds", Ratio::range_text(ratio))
    }

    /// How many requests a server handled, and how fast.
    pub(super) fn speed(self, sample: &Sample) -> Self {
        self.rate("Requests per second", sample.rate()).latency("p50", sample.p50).latency("p99", sample.p99)
    }

    pub(super) fn generator_busy(self, sample: &Sample) -> Self {
        self.number("Generator busy", format::percent(sample.generator_busy))
    }
}

/// A table being filled.
#[derive(Debug, Default)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Adds a row, with the columns of those before it.
    pub(crate) fn row(&mut self, row: Row) {
        assert!(self.rows.is_empty() || self.columns == row.columns, "all rows have the same columns");
        self.columns = row.columns;
        self.rows.push(row.cells);
    }

    /// Writes the table under its title.
    pub(crate) fn write(&self, title: &str, out: &mut dyn Write) -> io::Result<()> {
        let heading = |column: &Column| match column {
            Column::Text(heading) | Column::Number(heading) => (*heading).to_owned(),
        };
        let headings: Vec<String> = self.columns.iter().map(heading).collect();
        let width = |column: usize| {
            let cells = self.rows.iter().chain([&headings]).map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..headings.len()).map(width).collect();
        writeln!(out, "\n### {title}\n")?;
        self.write_row(&headings, &widths, out)?;
        for (column, width) in self.columns.iter().zip(&widths) {
            match column {
                Column::Text(_) => write!(out, "|{:-<1$}", "", width + 2)?,
                Column::Number(_) => write!(out, "|{:-<1$}:", "", width + 1)?,
            }
        }
        writeln!(out, "|")?;
        self.rows.iter().try_for_each(|row| self.write_row(row, &widths, out))?;
        out.flush()
    }

    fn write_row(&self, cells: &[String], widths: &[usize], out: &mut dyn Write) -> io::Result<()> {
        for ((column, cell), &width) in self.columns.iter().zip(cells).zip(widths) {
            match column {
                Column::Text(_) => write!(out, "| {cell:<width$} ")?,
                Column::Number(_) => write!(out, "| {cell:>width$} ")?,
            }
        }
        writeln!(out, "|")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_left_aligned_and_numbers_right_aligned() {
        let mut table = Table::default();
        table.row(Row::default().text("Spread", "uniform").number("p50", "7 µs".to_owned()));
        table.row(Row::default().text("Spread", "Zipf").number("p50", "1,234 µs".to_owned()));
        let mut out = Vec::new();
        table.write("Charges", &mut out).unwrap();
        let expected = "
### Charges

| Spread  |      p50 |
|---------|---------:|
| uniform |     7 µs |
| Zipf    | 1,234 µs |
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
