//! Statements of the caller's account from the log of postings, as JSON with proofs and as CSV files.

use metering_client::calls::account::{GetStatement, GetStatementCsv, StatementLines};
use metering_core::Credits;
use metering_core::access::Scope;
use metering_core::wire::call::Call;
use metering_core::wire::{AccountStatementDocument, ErrorCode, StatementLineDocument};

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
    ];
    let next = next.map(|after| format!("/statements/{period}/lines.csv?after={after}"));
    Ok(csv(&format!("statement-{org_id}-{period}"), columns, lines.iter().map(cells), next))
}

fn cells(line: &StatementLineDocument) -> [Cell<'_>; 12] {
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
