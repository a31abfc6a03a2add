//! What standard output can show: its width if it is a terminal, block characters and colours.
//!
//! Found once, at the start of the program. Until then, and so in unit tests, output is plain: whole tables, and JSON on
//! one line.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::OnceLock;

/// The width if the terminal reports none.
const COLUMNS_DEFAULT: usize = 80;

/// The screen of this run, which is one command.
static SCREEN: OnceLock<Screen> = OnceLock::new();

/// What the output can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Screen {
    pub(crate) terminal: bool,
    pub(crate) columns: usize,
    /// Whether it shows block characters and other Unicode.
    pub(crate) blocks: bool,
    pub(crate) colour: bool,
    /// Whether the user wants whole tables on a terminal, too.
    pub(crate) wide: bool,
}

impl Screen {
    const PLAIN: Self = Self { terminal: false, columns: COLUMNS_DEFAULT, blocks: false, colour: false, wide: false };

    /// Checks standard output and the environment, for all output of this run.
    pub(crate) fn init(wide: bool) {
        let terminal = std::io::stdout().is_terminal();
        let columns = console::Term::stdout().size_checked().map(|(_, columns)| columns);
        // Called once, by `main`.
        let _ = SCREEN.set(Self { wide, ..Self::of(terminal, columns, |name| std::env::var_os(name)) });
    }

    /// The screen of this run.
    pub(crate) fn current() -> Self {
        SCREEN.get().copied().unwrap_or(Self::PLAIN)
    }

    /// How wide a table may be; `None` if it should be shown in full.
    pub(crate) fn table_columns(self) -> Option<usize> {
        (self.terminal && !self.wide).then_some(self.columns)
    }

    /// The mark for truncated text.
    pub(crate) const fn ellipsis(self) -> &'static str {
        if self.blocks { "…" } else { ".." }
    }

    fn of(terminal: bool, columns: Option<u16>, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        // Set by shells, and by users who want a width other than the terminal's.
        let wanted = set("COLUMNS").and_then(|value| value.to_str()?.parse::<u16>().ok());
        let columns = wanted.or(columns).filter(|columns| *columns > 0).map_or(COLUMNS_DEFAULT, usize::from);
        // The first one that is set wins (POSIX, Base Definitions, 8.2).
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
        let utf8 = locale.map(|locale| locale.to_string_lossy().to_ascii_lowercase());
        let utf8 = utf8.map_or(cfg!(windows), |locale| locale.contains("utf-8") || locale.contains("utf8"));
        let plain = set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb");
        Self { terminal, columns, blocks: terminal && utf8, colour: terminal && !plain, wide: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Variables = &'static [(&'static str, &'static str)];

    #[test]
    fn screens_depend_on_terminal_and_environment() {
        // terminal, columns, variables, expected columns, blocks, colour
        let table: [(bool, Option<u16>, Variables, usize, bool, bool); 9] = [
            (true, Some(120), &[("LANG", "en_US.UTF-8")], 120, true, true),
            (true, Some(120), &[("LANG", "C")], 120, false, true),
            (true, Some(120), &[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")], 120, false, true),
            (true, Some(120), &[("LC_ALL", ""), ("LANG", "de_DE.utf8")], 120, true, true),
            (true, Some(0), &[("LANG", "C.UTF-8"), ("NO_COLOR", "1")], 80, true, false),
            (true, None, &[("LANG", "C.UTF-8"), ("NO_COLOR", ""), ("TERM", "dumb")], 80, true, false),
            (false, None, &[("LANG", "C.UTF-8")], 80, false, false),
            (false, None, &[("COLUMNS", "33"), ("LANG", "C.UTF-8")], 33, false, false),
            (true, Some(90), &[("COLUMNS", "wide"), ("LANG", "C.UTF-8")], 90, true, true),
        ];
        for (terminal, width, variables, columns, blocks, colour) in table {
            let variable =
                |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| OsString::from(value));
            let screen = Screen::of(terminal, width, variable);
            assert_eq!(screen, Screen { terminal, columns, blocks, colour, wide: false }, "{variables:?}");
        }
    }

    #[test]
    fn only_a_terminal_limits_tables_and_wide_lifts_the_limit() {
        let terminal = Screen { terminal: true, columns: 90, ..Screen::PLAIN };
        assert_eq!(terminal.table_columns(), Some(90));
        assert_eq!(Screen { wide: true, ..terminal }.table_columns(), None);
        assert_eq!(Screen { terminal: false, ..terminal }.table_columns(), None);
    }
}
