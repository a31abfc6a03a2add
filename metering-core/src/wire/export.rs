//! The stored data of an account, for its owner.

use serde::Serialize;

use crate::wire::{
    AccountLogDocument, ActivityDocument, AutoTopUpResponse, BalanceDocument, BrowserSessionsDocument, BuyerResponse,
    CardChargeDocument, ChildAccountsDocument, DailyUsageDocument, DeliveriesDocument, EventsDocument, KeysDocument,
    LedgerDocument, MembersDocument, NoteDocument, OAuthGrantDocument, ReceiptsDocument, RequestsDocument,
    WebhooksDocument,
};

/// The response to `GET /account/export`. Each part is the response of the call named with it; where a part has a
/// `next`, that call returns the rest. Features that the service does not offer are null.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountExportDocument {
    /// When it was read, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub exported_at: String,
    /// The account: `GET /credits/balance`.
    pub account: BalanceDocument,
    /// Its keys, without secrets: `GET /keys`.
    pub keys: KeysDocument,
    /// Every change of the balance except usage, the first 10,000: `GET /credits/ledger`.
    pub ledger: LedgerDocument,
    /// Usage of the last 366 days: `GET /credits/usage/daily`.
    pub usage: DailyUsageDocument,
    /// The newest entries of recent activity, at most 1,000: `GET /credits/usage`.
    pub activity: ActivityDocument,
    /// Requests whose credits are held: `GET /requests`.
    pub requests: RequestsDocument,
    /// The newest receipts, at most 100: `GET /credits/receipts`.
    pub receipts: Option<ReceiptsDocument>,
    /// Who buys: `GET /credits/buyer`.
    pub buyer: Option<BuyerResponse>,
    /// The saved card and automatic top-ups: `GET /credits/auto-top-up`.
    pub auto_top_up: Option<AutoTopUpResponse>,
    /// Charges of saved cards that were paid or may be.
    pub card_charges: Option<Vec<CardChargeDocument>>,
    /// Wallets that are linked to the account by a proof of their owner, in lower case.
    pub linked_wallets: Option<Vec<String>>,
    /// Its webhooks, without secrets: `GET /webhooks`.
    pub webhooks: Option<WebhooksDocument>,
    /// The newest deliveries to each webhook, at most 100, in the order of `webhooks`: `GET /webhooks/{id}/deliveries`.
    pub deliveries: Option<Vec<DeliveriesDocument>>,
    /// The newest events, at most 100: `GET /events`.
    pub events: Option<EventsDocument>,
    /// Signed-in browsers: `GET /api-key/sessions`.
    pub sessions: Option<BrowserSessionsDocument>,
    /// Programs that the owner gave access with OAuth.
    pub oauth_grants: Option<Vec<OAuthGrantDocument>>,
    /// Its members and open invitations: `GET /members`.
    pub members: Option<MembersDocument>,
    /// The newest entries of its own log, at most 100: `GET /members/log`.
    pub account_log: Option<AccountLogDocument>,
    /// Accounts below it, the first 100: `GET /accounts`. A child does not learn whose it is.
    pub child_accounts: Option<ChildAccountsDocument>,
    /// The operators' notes on the account, newest first, at most 100.
    pub notes: Option<Vec<NoteDocument>>,
}
