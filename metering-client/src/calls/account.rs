//! The caller's account: balance, usage, statements, and requests whose credits are held.

use metering_core::Day;
use metering_core::access::{KeyId, RoutePatterns};
use metering_core::clock::CalendarPeriod;
use metering_core::wire::call::{Bounded, Clamped, EntryNumber};
use metering_core::wire::{
    AccountExportDocument, AccountStatementDocument, ActivityDocument, BalanceDocument, BuyerRequest, BuyerResponse,
    ByEndpointDocument, DailyUsageDocument, LedgerDocument, ReceiptDocument, ReceiptsDocument, RequestDocument,
    RequestsDocument, UsageSummary, VolumesDocument,
};
use metering_core::{call, parameters};

use super::access::KEY;

parameters! {
    /// Which entries.
    ActivityPage {
        /// Maximum number of entries; a number outside the range is clamped
        limit: Clamped<100, 1000> = 100,
        /// The value of `next` in the previous response
        before: Option<String> = "act_1000",
        /// Only requests with this key, without its child keys
        key: Option<KeyId>,
        /// Only requests to this route, such as `GET /search` or `/quotes/*`
        route: Option<RoutePatterns>,
        /// Only requests with this `model`, which entries of routes with prices by model have
        model: Option<String>,
        /// Only this UTC day and later ones
        from: Option<Day> = "2026-11-01",
        /// Only this UTC day and earlier ones
        to: Option<Day> = "2026-11-30",
    }

    /// Which days.
    SummaryDays {
        /// Days in the window, 7 by default; a number outside the range is clamped
        days: Clamped<7, 90> = 30,
    }

    /// Which days and routes.
    ByEndpointRange {
        /// Days in the window, 30 by default; a number outside the range is clamped
        days: Clamped<30, 90> = 30,
        /// Maximum number of routes, 50 by default
        limit: Clamped<50, 1000> = 50,
    }

    /// Which days.
    DayRange {
        /// The first day, 29 days before the last by default
        from: Option<Day> = "2026-11-01",
        /// The last day, today by default
        to: Option<Day> = "2026-11-30",
    }

    /// Which entries.
    LedgerPage {
        /// The number of the entry to continue after
        after: Option<EntryNumber> = 0,
        /// Maximum number of entries, 100 by default
        limit: Bounded<100, 10_000> = 100,
    }

    /// Which entries.
    LedgerCsvPage {
        /// The number of the entry to continue after
        after: Option<EntryNumber> = 0,
        /// Maximum number of entries, 10,000 by default
        limit: Bounded<10_000, 10_000> = 10_000,
    }

    /// Which lines.
    StatementLines {
        /// The UTC day or month
        period: CalendarPeriod = "2026-11",
        /// The value of `next` in the previous response
        after: Option<u64> = 65_536,
    }

    /// Which receipts.
    ReceiptsPage {
        /// The value of `next` in the previous response
        before: Option<EntryNumber> = 1000,
        /// Maximum number of receipts, 20 by default
        limit: Bounded<20, 100> = 20,
    }

    /// A receipt.
    OfReceipt {
        /// The receipt's number
        number: String = "R-8453-9F86D081884C7D65",
    }

    /// A request.
    OfRequest {
        /// The id of the request, from `X-BDS-Request-Id` or `X-Request-Id`
        id: String,
    }
}

call! {
    /// The account and its balance
    ///
    /// Works at any balance, including zero and negative ones.
    GetBalance("balance") = GET "/credits/balance" in "account" for KEY;
    returns(200, "The account": BalanceDocument);

    /// Everything that is stored of the account
    ///
    /// For the account's owner: needs the account's first key. Without secrets and their hashes. Long lists are cut; where a
    /// part has a `next`, the call that it is named with has the rest.
    ExportAccount("export") = GET "/account/export" in "account" for KEY;
    returns(200, "The account": AccountExportDocument);

    /// Recent activity, newest first
    ///
    /// At least the last 1,000 entries of an account are kept. If `next` is not null, older entries follow: send it as
    /// `before`, with the same `key`, `route`, `from` and `to`.
    ListActivity("usage") = GET "/credits/usage" in "account" for KEY;
    takes(ActivityPage, ());
    returns(200, "Recent activity": ActivityDocument) or(ValidationFailed);

    /// Usage by day and by route
    ///
    /// UTC days; the window is today and the days before it. Days, routes and balance are read in one snapshot and add
    /// up exactly.
    GetUsageSummary("usage_summary") = GET "/credits/usage/summary" in "account" for KEY;
    takes(SummaryDays, ());
    returns(200, "The summary": UsageSummary) or(ValidationFailed);

    /// Usage by route
    GetUsageByEndpoint("usage_by_endpoint") = GET "/credits/usage/by-endpoint" in "account" for KEY;
    takes(ByEndpointRange, ());
    returns(200, "Routes by credits": ByEndpointDocument) or(ValidationFailed);

    /// Requests of the month to routes with volume tiers
    ///
    /// Calendar months in UTC. Requests are counted per account, whichever key they came with; refunded ones are not
    /// counted.
    GetUsageVolumes("usage_volumes") = GET "/credits/usage/volumes" in "account" for KEY;
    returns(200, "The routes with volume tiers": VolumesDocument);

    /// Usage by day, route, method and source
    ///
    /// UTC days, oldest first, at most 366. If `next` is not null, more days follow: send it as `from`, with the same
    /// `to`.
    GetDailyUsage("usage_daily") = GET "/credits/usage/daily" in "account" for KEY;
    takes(DayRange, ());
    returns(200, "Daily usage": DailyUsageDocument) or(ValidationFailed);

    /// Usage by day, route, method and source, as a CSV file
    ///
    /// The columns are `day,route,method,source,calls,credits,key_id,key_name`. If more days follow, the `Link` header
    /// has their URL (`rel="next"`). Text that a spreadsheet would interpret as a formula begins with an apostrophe.
    GetUsageCsv("usage_csv") = GET "/credits/usage.csv" in "account" for KEY;
    takes(DayRange, ());
    returns(200, "Daily usage": String as "text/csv") or(ValidationFailed);

    /// The ledger, oldest entry first
    ///
    /// Every change of the balance except usage. If `next` is not null, more entries follow: send it as `after`.
    GetLedger("ledger") = GET "/credits/ledger" in "account" for KEY;
    takes(LedgerPage, ());
    returns(200, "Ledger entries": LedgerDocument) or(ValidationFailed);

    /// The ledger as a CSV file
    ///
    /// The columns are `id,created_at,type,credits,description,plan_id,chain_id,tx_hash`. If more entries follow, the
    /// `Link` header has their URL (`rel="next"`). Text that a spreadsheet would interpret as a formula begins with an
    /// apostrophe.
    GetLedgerCsv("ledger_csv") = GET "/credits/ledger.csv" in "account" for KEY;
    takes(LedgerCsvPage, ());
    returns(200, "Ledger entries": String as "text/csv") or(ValidationFailed);

    /// The statement of a day or a month, with proofs
    ///
    /// Every change of the account's funds (its balance and held credits) in the order of the service's log, each with
    /// its number in the account, its position in the log, and the proof that the tree of the checkpoint has it.
    /// `metering statement verify` checks all of that, and your receipts against it. If `next` is not null, more lines
    /// follow: send it as `after`; each page is signed and can be verified alone. A statement that is not `complete`
    /// has the log's lines until `until`.
    GetStatement("statement") = GET "/statements/{period}" in "account" for KEY;
    takes(StatementLines, ());
    returns(200, "A page of the statement": AccountStatementDocument)
        or(ValidationFailed, StatementNotFound: "the service keeps no log, or not of that time",
            RateLimited: "another statement of the account is being made");

    /// The statement of a day or a month, as a CSV file without proofs
    ///
    /// The columns are `number,at,type,credits,funds,calls,route,source,key_number,entry,chain_id,tx_hash,note`. If the
    /// statement has a `gap`, the first row has the type `gap`, and its `note` describes the missing part. If more
    /// lines follow, the `Link` header has their URL (`rel="next"`). Text that a spreadsheet would interpret as a
    /// formula begins with an apostrophe.
    GetStatementCsv("statement_csv") = GET "/statements/{period}/lines.csv" in "account" for KEY;
    takes(StatementLines, ());
    returns(200, "Lines of the statement": String as "text/csv")
        or(ValidationFailed, StatementNotFound: "the service keeps no log, or not of that time",
            RateLimited: "another statement of the account is being made");

    /// Receipts for purchases, newest first
    ///
    /// If `next` is not null, older receipts follow: send it as `before`.
    ListReceipts("receipts") = GET "/credits/receipts" in "account" for KEY;
    takes(ReceiptsPage, ());
    returns(200, "Receipts": ReceiptsDocument) or(ValidationFailed);

    /// The receipt for a purchase
    ///
    /// The number may be that of the receipt or of one of its credit notes. `/metering/receipt?number=...` is the page to
    /// print.
    GetReceipt("receipt") = GET "/credits/receipt" in "account" for KEY;
    takes(OfReceipt, ());
    returns(200, "The receipt": ReceiptDocument) or(ValidationFailed, NotFound: "the account has no such receipt");

    /// The receipt for a purchase, as a PDF file
    ///
    /// Always the same bytes for the same receipt. With the number of a credit note, the file of the credit note.
    GetReceiptPdf("receipt_pdf") = GET "/credits/receipt.pdf" in "account" for KEY;
    takes(OfReceipt, ());
    returns(200, "The receipt": String as "application/pdf")
        or(ValidationFailed, NotFound: "the account has no such receipt");

    /// Add the buyer to a receipt without one
    ///
    /// The receipt gets the details of `GET /credits/buyer`. Its number and date do not change. A receipt that names a
    /// buyer is never changed. May be repeated.
    AddReceiptBuyer("add_receipt_buyer") = POST "/credits/receipt/buyer" in "account" for KEY;
    takes(OfReceipt, ());
    returns(200, "The receipt as it is now": ReceiptDocument)
        or(ValidationFailed: "also if it names another buyer, or no buyer is set",
            NotFound: "the account has no such receipt", RateLimited, OutcomeUnknown);

    /// Who buys for the account
    GetBuyer("buyer") = GET "/credits/buyer" in "account" for KEY;
    returns(200, "Who buys": BuyerResponse);

    /// Set who buys for the account
    ///
    /// Name, address and tax number are on the receipts for purchases from then on. Receipts for earlier purchases do
    /// not change.
    SetBuyer("set_buyer") = PUT "/credits/buyer" in "account" for KEY;
    takes((), BuyerRequest);
    returns(200, "Who buys from now on": BuyerResponse) or(RateLimited, OutcomeUnknown);

    /// Requests whose credits are held now, newest first
    ///
    /// At most 100.
    ListHeldRequests("held_requests") = GET "/requests" in "account" for KEY;
    returns(200, "The requests": RequestsDocument);

    /// What a request holds, or what it was charged
    ///
    /// The id is in the header `X-BDS-Request-Id` or `X-Request-Id` of the response. A request whose credits were held
    /// is kept for a day after it was settled. A request that was charged immediately is found as long as it is among
    /// the account's recent activity; `explanation` then explains the charge. A key without the scope `read` finds only
    /// its own requests. With `Prefer: metering-receipt`, `receipt` is a signed receipt of the amount captured from a
    /// hold.
    GetRequest("request") = GET "/requests/{id}" in "account" for KEY;
    takes(OfRequest, ());
    returns(200, "The request": RequestDocument) or(NotFound: "the account has no such request, or no longer");
}
