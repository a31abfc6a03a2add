//! Fits a table into the width of a terminal: first shortens cells, then hides columns, and never wraps a row.

use metering_core::Timestamp;

use crate::table::column::{Column, Short};
use crate::table::short::{cut, shortened, width};

/// The space between two columns.
const GAP: usize = 2;
/// Text is not cut shorter than this as long as another column can be hidden.
const TEXT_MIN: usize = 12;

/// How much cells are shortened, from not at all. Ids come last: people copy them.
const STAGES: [&[Short]; 5] = [
    &[],
    &[Short::Time],
    &[Short::Time, Short::Amount],
    &[Short::Time, Short::Amount, Short::Text],
    &[Short::Time, Short::Amount, Short::Text, Short::Id],
];

/// The room for a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// The width; `None` for no limit.
    pub(super) columns: Option<usize>,
    /// The time that others are relative to.
    pub(super) now: Timestamp,
    pub(super) ellipsis: &'static str,
    /// Whether to colour states.
    pub(super) colour: bool,
}

/// A table as lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The headings and the rows, without spaces at the end.
    pub(crate) lines: Vec<String>,
    hidden: usize,
    is_shortened: bool,
}

impl Layout {
    /// A note about hidden or shortened columns.
    pub(crate) fn note(&self) -> Option<String> {
        let left_out = match (self.hidden, self.is_shortened) {
            (0, false) => return None,
            (0, true) => "Values shortened".to_owned(),
            (1, false) => "1 column hidden".to_owned(),
            (1, true) => "1 column hidden, values shortened".to_owned(),
            (hidden, false) => format!("{hidden} columns hidden"),
            (hidden, true) => format!("{hidden} columns hidden, values shortened"),
        };
        Some(format!("{left_out}; --wide shows all"))
    }
}

/// The visible columns of a table, and their form.
#[derive(Debug)]
struct Plan {
    /// The positions of the columns that are shown, and their widths.
    kept: Vec<(usize, usize)>,
    /// Which kinds of columns are shortened.
    stage: &'static [Short],
}

/// Lays out a table.
pub(super) fn lay_out(columns: &[Column], rows: &[Vec<String>], room: Room) -> Layout {
    let short = |column: &Column, cell: &str| shortened(column.short, cell, room.now, room.ellipsis);
    let widths = |form: &dyn Fn(&Column, &str) -> usize| -> Vec<usize> {
        let of_column = |(position, column): (usize, &Column)| {
            rows.iter().map(|row| form(column, &row[position])).fold(width(column.heading), usize::max)
        };
        columns.iter().enumerate().map(of_column).collect()
    };
    let full = widths(&|_, cell| width(cell));
    let plan = match room.columns {
        Some(limit) if total(full.iter().copied()) > limit => {
            fit(columns, &full, &widths(&|column, cell| width(&short(column, cell))), limit)
        }
        _ => Plan { kept: full.into_iter().enumerate().collect(), stage: STAGES[0] },
    };
    let mut layout = Layout { hidden: columns.len() - plan.kept.len(), ..Layout::default() };
    let headings = Room { colour: false, ..room };
    layout.lines.push(line(columns, &plan.kept, headings, |position| columns[position].heading.to_owned()));
    for row in rows {
        let cells = line(columns, &plan.kept, room, |position| {
            let (column, cell) = (&columns[position], &row[position]);
            if plan.stage.contains(&column.short) { short(column, cell) } else { cell.clone() }
        });
        layout.lines.push(cells);
    }
    layout.is_shortened = plan.kept.iter().any(|(position, columns_of_cell)| {
        let (column, position) = (&columns[*position], *position);
        let is_short = plan.stage.contains(&column.short);
        rows.iter().any(|row| {
            let cell = &row[position];
            width(cell) > *columns_of_cell || (is_short && short(column, cell) != *cell)
        })
    });
    layout
}

/// The minimum that must be omitted. `full` and `short` are the widths of columns with whole and with shortened cells.
fn fit(columns: &[Column], full: &[usize], short: &[usize], limit: usize) -> Plan {
    // Of columns with the same rank, the last one goes first.
    let mut order: Vec<usize> = (0..columns.len()).filter(|position| columns[*position].rank > 0).collect();
    order.sort_by_key(|position| (columns[*position].rank, *position));
    loop {
        let is_shown = |position: &usize| columns[*position].rank == 0 || order.contains(position);
        let shown: Vec<usize> = (0..columns.len()).filter(is_shown).collect();
        for stage in STAGES {
            let of_column = |position: usize| {
                let is_short = stage.contains(&columns[position].short);
                (position, if is_short { short[position] } else { full[position] })
            };
            let mut kept: Vec<_> = shown.iter().copied().map(of_column).collect();
            if stage.contains(&Short::Text) {
                let least = |position: usize, now: usize| match columns[position].short {
                    Short::Text => now.min(TEXT_MIN.max(width(columns[position].heading))),
                    _ => now,
                };
                squeeze(&mut kept, limit, least);
            }
            if total(kept.iter().map(|(_, columns)| *columns)) <= limit {
                return Plan { kept, stage };
            }
        }
        if order.pop().is_none() {
            let mut kept: Vec<_> = shown.iter().map(|position| (*position, short[*position])).collect();
            squeeze(&mut kept, limit, |_, _| 1);
            return Plan { kept, stage: STAGES[STAGES.len() - 1] };
        }
    }
}

/// Narrows the widest columns until all fit, or reach the width that `least` returns for their position and width.
fn squeeze(kept: &mut [(usize, usize)], limit: usize, least: impl Fn(usize, usize) -> usize) {
    let mut rest = total(kept.iter().map(|(_, columns)| *columns)).saturating_sub(limit);
    let floors: Vec<usize> = kept.iter().map(|(position, columns)| least(*position, *columns)).collect();
    while rest > 0 {
        let narrower = kept.iter_mut().zip(&floors).filter(|((_, columns), floor)| *columns > **floor);
        let Some(((_, columns), _)) = narrower.max_by_key(|((_, columns), _)| *columns) else { return };
        *columns -= 1;
        rest -= 1;
    }
}

fn total(widths: impl ExactSizeIterator<Item = usize>) -> usize {
    let gaps = GAP * widths.len().saturating_sub(1);
    widths.sum::<usize>() + gaps
}

/// A line of a table, cut where even the gaps do not fit; then it has no colours.
fn line(columns: &[Column], kept: &[(usize, usize)], room: Room, cell: impl Fn(usize) -> String) -> String {
    let (mut line, mut coloured) = (String::new(), String::new());
    for (place, (position, columns_of_cell)) in kept.iter().enumerate() {
        if place > 0 {
            line.push_str(&" ".repeat(GAP));
            coloured.push_str(&" ".repeat(GAP));
        }
        let cell = match room.columns {
            Some(_) => cut(&cell(*position), *columns_of_cell, room.ellipsis),
            None => cell(*position),
        };
        let padding = " ".repeat(columns_of_cell.saturating_sub(width(&cell)));
        let is_right_aligned = columns[*position].is_right_aligned;
        let [before, after] = if is_right_aligned { [&*padding, &*cell] } else { [&*cell, &*padding] };
        line.push_str(before);
        line.push_str(after);
        match colour(&cell).filter(|_| columns[*position].is_state) {
            Some(colour) => coloured.push_str(&format!("\u{1b}[{colour}m{cell}\u{1b}[0m{padding}")),
            None => coloured.extend([before, after]),
        }
    }
    let line = line.trim_end();
    match room.columns {
        Some(limit) if width(line) > limit => cut(line, limit, room.ellipsis),
        _ if room.colour => coloured.trim_end().to_owned(),
        _ => line.to_owned(),
    }
}

/// The colour (ECMA-48, 8.3.117) of a state: green where all is well, yellow where something is awaited or off, red where
/// something is lost. Other words have none.
fn colour(state: &str) -> Option<u8> {
    match state {
        "active" | "delivered" | "final" | "in force" | "paid" => Some(32),
        "disabled" | "parent inactive" | "partly reversed" | "pending" | "scheduled" | "unsettled" => Some(33),
        "expired" | "gone" | "leaked" | "parked" | "reversed" | "revoked" | "unclear" => Some(31),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
