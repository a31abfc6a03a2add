//! A column of a table: its heading, and how it is shortened or hidden on narrow terminals.
//!
//! Headings are in capitals, with spaces between words.

/// How a column's cells are shortened on narrow terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Short {
    /// They stay.
    Never,
    /// A time relative to now.
    Time,
    /// An amount with at most four decimal places.
    Amount,
    /// An id without its middle.
    Id,
    /// A text without its end.
    Text,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) heading: &'static str,
    pub(crate) is_right_aligned: bool,
    pub(crate) short: Short,
    /// Whether its words are coloured by meaning.
    pub(crate) is_state: bool,
    /// If columns must be hidden, the one with the largest rank goes first. Rank 0 is never hidden.
    pub(crate) rank: u8,
}

impl Column {
    const fn new(heading: &'static str, is_right_aligned: bool, short: Short) -> Self {
        Self { heading, is_right_aligned, short, is_state: false, rank: 0 }
    }

    /// Text of any length.
    pub(crate) const fn text(heading: &'static str) -> Self {
        Self::new(heading, false, Short::Text)
    }

    /// One of a few words.
    pub(crate) const fn word(heading: &'static str) -> Self {
        Self::new(heading, false, Short::Never)
    }

    /// A state, one of a few words.
    pub(crate) const fn state(heading: &'static str) -> Self {
        Self { is_state: true, ..Self::word(heading) }
    }

    /// A whole number, or an amount that must be exact.
    pub(crate) const fn number(heading: &'static str) -> Self {
        Self::new(heading, true, Short::Never)
    }

    /// An amount.
    pub(crate) const fn amount(heading: &'static str) -> Self {
        Self::new(heading, true, Short::Amount)
    }

    /// A time.
    pub(crate) const fn time(heading: &'static str) -> Self {
        Self::new(heading, false, Short::Time)
    }

    /// An id, a hash or an address.
    pub(crate) const fn id(heading: &'static str) -> Self {
        Self::new(heading, false, Short::Id)
    }

    /// A cell as shown: states are plain words here, and protocol names in JSON.
    pub(crate) fn shown(&self, cell: String) -> String {
        if self.is_state { cell.replace('_', " ") } else { cell }
    }

    /// The column, which may be hidden: the one with the largest rank first.
    pub(crate) const fn optional(self, rank: u8) -> Self {
        Self { rank, ..self }
    }
}
