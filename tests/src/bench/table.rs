//! Markdown tables, padded so that they are readable as plain text too.

use std::io::{self, Write};

/// A column's heading and alignment.
#[derive(Debug, Clone, Copy)]
pub(super) enum Column {
    /// Words, left-aligned.
    Text(&'static str),
    /// Figures, right-aligned.
    Number(&'static str),
}

/// A table being filled.
#[derive(Debug)]
pub(super) struct Table<const N: usize> {
    columns: [Column; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(super) fn new(columns: [Column; N]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// Writes the table under its title.
    pub(super) fn write(&self, title: &str, out: &mut dyn Write) -> io::Result<()> {
        let headings = self.columns.map(|column| match column {
            Column::Text(heading) | Column::Number(heading) => heading.to_owned(),
        });
        let widths: [usize; N] = std::array::from_fn(|column| {
            let cells = self.rows.iter().chain([&headings]).map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        });
        writeln!(out, "\n### {title}\n")?;
        self.write_row(&headings, widths, out)?;
        for (column, width) in self.columns.iter().zip(widths) {
            match column {
                Column::Text(_) => write!(out, "|{:-<1$}", "", width + 2)?,
                Column::Number(_) => write!(out, "|{:-<1$}:", "", width + 1)?,
            }
        }
        writeln!(out, "|")?;
        self.rows.iter().try_for_each(|row| self.write_row(row, widths, out))?;
        out.flush()
    }

    fn write_row(&self, cells: &[String; N], widths: [usize; N], out: &mut dyn Write) -> io::Result<()> {
        for ((column, cell), width) in self.columns.iter().zip(cells).zip(widths) {
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
        let mut table = Table::new([Column::Text("Spread"), Column::Number("p50")]);
        table.row(["uniform".to_owned(), "7 µs".to_owned()]);
        table.row(["Zipf".to_owned(), "1,234 µs".to_owned()]);
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
