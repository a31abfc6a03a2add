//! Statements of the caller's account from the log of postings, as JSON with proofs and as CSV files.

use metering_client::calls::account::{GetStatement, GetStatementCsv, StatementLines};
use metering_core::Credits;
use metering_core::access::Scope;
use metering_core::wire::call::Call;
use metering_core::wire::{AccountStatementDocument, ErrorCode, StatementGapDocument, StatementLineDocument};

use crate::api::account::parameters;
use crate::api::app::App;
use crate::endpoints::Request;
use crate::http::csv::{Cell, csv};
use crate::http::{Problem, Reply};

pub(crate) async fn account_statement(app: &App, request: Request) -> Result<AccountStatementDocument, Problem> {
    page::<GetStatement>(app, &request).await
}

pub(crate) async fn account_statement_csv(app: &App, request: Request) -> Result<Reply, Problem> {
    let page = page::<GetStatementCsv>(app, &request).await?;
    let AccountStatementDocument { org_id, period, lines, next, .. } = &page;
    // Pages after the first start with the lines.
    let gap = page.gap.iter().filter(|_| page.after.is_none());
    let columns = [
        "number",
        "at",
        "type",
        "credits",
        "funds",
        "calls",
        "route",
        "source",
        "key_number",
        "entry",
        "chain_id",
        "tx_hash",
        "note",
    ];
    let next = next.map(|after| format!("/statements/{period}/lines.csv?after={after}"));
    let rows = gap.map(gap_cells).chain(lines.iter().map(cells));
    Ok(csv(&format!("statement-{org_id}-{period}"), columns, rows, next))
}

/// The row that lists what the file lacks.
fn gap_cells(gap: &StatementGapDocument) -> [Cell<'_>; 13] {
    let StatementGapDocument { from, until, reason, previous } = gap;
    let log = previous.as_ref().map_or_else(|| "an earlier log".to_owned(), |log| format!("the log {}", log.origin));
    let note = format!("Not in this file: {from} to {until}. Its postings are in {log} or in none (store {reason}).");
    let mut cells = [const { Cell::Text("") }; 13];
    cells[1] = Cell::Value(until.to_string());
    cells[2] = Cell::Text("gap");
    cells[12] = Cell::Value(note);
    cells
}

fn cells(line: &StatementLineDocument) -> [Cell<'_>; 13] {
    let number = |number: Option<u64>| Cell::Value(number.map(|number| number.to_string()).unwrap_or_default());
    [
        Cell::Value(line.number.to_string()),
        Cell::Value(line.at.clone()),
        Cell::Value(line.kind.clone()),
        Cell::Value(credits(&line.atoms)),
        Cell::Value(credits(&line.funds)),
        number(line.calls),
        Cell::Text(line.route.as_deref().unwrap_or_default()),
        Cell::Text(line.source.as_deref().unwrap_or_default()),
        number(line.key_number.map(u64::from)),
        Cell::Value(line.entry.map(|entry| entry.to_string()).unwrap_or_default()),
        number(line.chain_id),
        Cell::Text(line.tx_hash.as_deref().unwrap_or_default()),
        Cell::Text(""),
    ]
}

fn credits(atoms: &str) -> String {
    atoms.parse().map(Credits::from_atoms).unwrap_or_default().to_string()
}

async fn page<C: Call<Parameters = StatementLines>>(
    app: &App,
    request: &Request,
) -> Result<AccountStatementDocument, Problem> {
    let StatementLines { period, after } = parameters::<C>(app, request, Scope::Read).await?;
    let account = app.service.access().authorize(&request.sender()?, Scope::Read).await?;
    let no_keys = || {
        let message =
            "This service signs no receipts, so it has no statements; see /credits/ledger and /credits/usage/daily.";
        Problem::new(ErrorCode::StatementNotFound, message)
    };
    let receipts = app.receipts.as_ref().ok_or_else(no_keys)?;
    receipts.statements().page(account, period, after, app.clock.now()).await
}

#[cfg(test)]
mod tests {
    use metering_core::Timestamp;
    use metering_core::wire::PreviousLogDocument;

    use super::*;

    #[test]
    fn a_file_says_what_it_lacks() {
        let previous = PreviousLogDocument { origin: "api.example.com/log/1".to_owned(), size: 9, root: String::new() };
        let gap = StatementGapDocument {
            from: Timestamp::from_unix_millis(1_795_219_200_000),
            until: Timestamp::from_unix_millis(1_795_262_400_000),
            reason: "restored".to_owned(),
            previous: Some(previous),
        };
        let text = |cell: &Cell<'_>| match cell {
            Cell::Value(value) => value.clone(),
            Cell::Text(text) => (*text).to_owned(),
        };
        let cells: Vec<String> = gap_cells(&gap).iter().map(text).filter(|cell| !cell.is_empty()).collect();
        let note = "Not in this file: 2026-11-21T00:00:00.000Z to 2026-11-21T12:00:00.000Z. Its postings are in the log \
                    api.example.com/log/1 or in none (store restored).";
        assert_eq!(cells, ["2026-11-21T12:00:00.000Z", "gap", note]);
    }
}
