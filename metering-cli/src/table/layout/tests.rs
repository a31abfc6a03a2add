//! A table of accounts at several widths.

use super::*;

const COLUMNS: &[Column] = &[
    Column::id("ACCOUNT"),
    Column::text("AGENT NAME"),
    Column::amount("BALANCE").optional(1),
    Column::number("CALLS").optional(2),
    Column::time("CREATED").optional(3),
    Column::text("NOTE").optional(4),
];

fn at(columns: Option<usize>) -> Layout {
    let now = "2026-11-21T12:00:00Z".parse().unwrap();
    let row = |cells: [&str; 6]| cells.map(str::to_owned).to_vec();
    let rows = [
        row(["org_0123456789abcdefghij", "my-agent", "7.4999305556", "12", "2026-11-21T11:57:00.000Z", ""]),
        row([
            "org_abcdefghij0123456789",
            "日本語のエージェント",
            "-0.0000694444",
            "1200",
            "2026-11-20T12:00:00.000Z",
            "waits for its email address, since the first day",
        ]),
    ];
    lay_out(COLUMNS, &rows, Room { columns, now, ellipsis: "…", colour: false })
}

#[test]
fn without_a_limit_everything_is_whole_and_exact() {
    let layout = at(None);
    let lines = [
        "ACCOUNT                   AGENT NAME                  BALANCE  CALLS  CREATED                   NOTE",
        "org_0123456789abcdefghij  my-agent               7.4999305556     12  2026-11-21T11:57:00.000Z",
        "org_abcdefghij0123456789  日本語のエージェント  -0.0000694444   1200  2026-11-20T12:00:00.000Z  waits for its \
         email address, since the first day",
    ];
    assert_eq!((layout.lines.as_slice(), layout.note()), (lines.map(str::to_owned).as_slice(), None));
    assert_eq!(at(Some(200)), layout);
}

#[test]
fn at_120_columns_values_are_shortened() {
    let layout = at(Some(120));
    let lines = [
        "ACCOUNT                   AGENT NAME             BALANCE  CALLS  CREATED    NOTE",
        "org_0123456789abcdefghij  my-agent                7.4999     12  3 min ago",
        "org_abcdefghij0123456789  日本語のエージェント  >-0.0001   1200  1 day ago  waits for its email address, since the firs…",
    ];
    assert_eq!(layout.lines, lines);
    assert_eq!(layout.note().as_deref(), Some("Values shortened; --wide shows all"));
}

#[test]
fn at_80_columns_texts_are_cut_before_ids_are() {
    let layout = at(Some(80));
    let lines = [
        "ACCOUNT                   AGENT NAME     BALANCE  CALLS  CREATED    NOTE",
        "org_0123456789abcdefghij  my-agent        7.4999     12  3 min ago",
        "org_abcdefghij0123456789  日本語のエ…   >-0.0001   1200  1 day ago  waits for i…",
    ];
    assert_eq!(layout.lines, lines);
    assert_eq!(layout.note().as_deref(), Some("Values shortened; --wide shows all"));
}

#[test]
fn at_40_columns_the_least_important_columns_are_hidden() {
    let layout = at(Some(40));
    let lines = [
        "ACCOUNT        AGENT NAME        BALANCE",
        "org_0123…ghij  my-agent           7.4999",
        "org_abcd…6789  日本語のエージ…  >-0.0001",
    ];
    assert_eq!(layout.lines, lines);
    assert_eq!(layout.note().as_deref(), Some("3 columns hidden, values shortened; --wide shows all"));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for columns in 0..200 {
        let layout = at(Some(columns));
        assert!(layout.lines.iter().all(|line| width(line) <= columns), "{columns}: {layout:?}");
        assert_eq!(layout.lines.len(), 3);
    }
}

#[test]
fn tables_without_rows_have_headings() {
    let now = Timestamp::from_unix_millis(0);
    let layout = lay_out(COLUMNS, &[], Room { columns: Some(40), now, ellipsis: "…", colour: false });
    assert!(layout.lines[0].starts_with("ACCOUNT  AGENT NAME"), "{layout:?}");
    assert_eq!(layout.lines.len(), 1);
}

#[test]
fn states_have_colours_that_take_no_room() {
    const STATES: &[Column] = &[Column::state("STATE"), Column::number("CALLS"), Column::state("THEN")];
    let now = "2026-11-21T12:00:00Z".parse().unwrap();
    let rows = [["active", "1", "revoked"], ["unheard of", "20", "pending"]].map(|row| row.map(str::to_owned).to_vec());
    let lines = |columns, colour| lay_out(STATES, &rows, Room { columns, now, ellipsis: "…", colour }).lines;
    let coloured = lines(Some(80), true);
    assert_eq!(coloured[0], "STATE       CALLS  THEN");
    assert_eq!(coloured[1], "\u{1b}[32mactive\u{1b}[0m          1  \u{1b}[31mrevoked\u{1b}[0m");
    assert_eq!(coloured[2], "unheard of     20  \u{1b}[33mpending\u{1b}[0m");
    assert_eq!(lines(Some(80), false)[1], "active          1  revoked");
    // Cut lines have no colours, whose ends would be missing.
    assert_eq!(lines(Some(4), true)[1], lines(Some(4), false)[1]);
}
