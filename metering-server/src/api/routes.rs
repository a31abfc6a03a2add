//! The table of endpoints.
//!
//! The calls of clients are declared once, in `metering_client::calls`; the endpoints for operators and for programs
//! that read descriptions are declared in their handlers' `utoipa::path`.

use std::sync::LazyLock;

use metering_client::calls::{
    account, billing, child_accounts, keys, members, oauth, payments, receipts, sessions, signup, webhooks,
};

use crate::api;
use crate::api::app::App;
use crate::endpoints::{Found, Table, call, endpoint};

/// All endpoints of the API. `pages` serves `GET /verify`.
pub(super) static ENDPOINTS: LazyLock<Table<App>> = LazyLock::new(|| {
    Table::new(vec![
        call!(payments::ListPlans as api::plans).compressed(),
        call!(account::GetBalance => api::balance),
        call!(account::ExportAccount => api::export).compressed(),
        call!(account::ListActivity => api::usage).compressed(),
        call!(account::GetUsageSummary => api::usage_summary).compressed(),
        call!(account::GetUsageByEndpoint => api::usage_by_endpoint).compressed(),
        call!(account::GetUsageVolumes => api::usage_volumes),
        call!(account::GetDailyUsage => api::usage_daily).compressed(),
        call!(account::GetUsageCsv as api::usage_csv).compressed(),
        call!(account::GetLedger => api::ledger).compressed(),
        call!(account::GetLedgerCsv as api::ledger_csv).compressed(),
        call!(account::GetStatement => api::account_statement).compressed(),
        call!(account::GetStatementCsv as api::account_statement_csv).compressed(),
        call!(account::ListReceipts => api::receipts).compressed(),
        call!(account::GetReceipt => api::receipt),
        call!(account::GetReceiptPdf as api::receipt_pdf),
        call!(account::AddReceiptBuyer => api::add_receipt_buyer),
        call!(account::GetBuyer => api::buyer),
        call!(account::SetBuyer => api::set_buyer),
        call!(account::ListHeldRequests => api::held_requests),
        call!(account::GetRequest => api::request),
        call!(keys::CreateKey => api::create_key),
        call!(keys::ListKeys => api::keys),
        call!(keys::GetKey => api::key),
        call!(keys::ChangeKey => api::change_key),
        call!(keys::DeleteKey => api::delete_key),
        call!(keys::RotateCurrentKey => api::rotate_current_key),
        call!(keys::RotateKey => api::rotate_key),
        call!(keys::ReportLeaked => api::report_leaked),
        call!(child_accounts::CreateChildAccount => api::create_child_account),
        call!(child_accounts::ListChildAccounts => api::child_accounts).compressed(),
        call!(child_accounts::GetChildrenUsage => api::child_accounts_usage).compressed(),
        call!(child_accounts::GetChildAccount => api::child_account),
        call!(child_accounts::ChangeChildAccount => api::change_child_account),
        call!(child_accounts::MoveCredits => api::move_credits),
        call!(child_accounts::RotateChildAccount => api::rotate_child_account),
        call!(child_accounts::CloseChildAccount => api::close_child_account),
        call!(members::ListMembers => api::members),
        call!(members::InviteMember => api::invite_member),
        call!(members::ChangeMember => api::change_member),
        call!(members::RemoveMember => api::remove_member),
        call!(members::GetAccountLog => api::account_log).compressed(),
        call!(webhooks::GetBalanceAlert => api::balance_alert),
        call!(webhooks::SetBalanceAlert => api::set_balance_alert),
        call!(webhooks::ListEvents => api::events).compressed(),
        call!(webhooks::CreateWebhook => api::create_webhook),
        call!(webhooks::ListWebhooks => api::webhooks),
        call!(webhooks::GetWebhook => api::webhook),
        call!(webhooks::ChangeWebhook => api::change_webhook),
        call!(webhooks::DeleteWebhook => api::delete_webhook),
        call!(webhooks::RotateWebhook => api::rotate_webhook),
        call!(webhooks::TestWebhook => api::test_webhook),
        call!(webhooks::ListDeliveries => api::deliveries).compressed(),
        call!(webhooks::GetDelivery => api::delivery),
        call!(webhooks::ResendDelivery => api::resend_delivery),
        call!(payments::TopUp => api::top_up),
        call!(payments::CompleteTopUp => api::complete_top_up),
        call!(payments::CreateTopUpQuote => api::top_up_quote),
        call!(payments::GetTopUpQuote => api::top_up_quote_status),
        call!(payments::ListOffers => api::offers).compressed(),
        call!(payments::Pay as api::pay),
        call!(payments::CreateCheckout => api::create_checkout),
        call!(payments::GetAutoTopUp => api::auto_top_up),
        call!(payments::SetAutoTopUp => api::set_auto_top_up),
        call!(payments::EndAutoTopUp => api::end_auto_top_up),
        call!(payments::RemoveCard => api::remove_card),
        endpoint!(api::stripe_webhook),
        call!(signup::StartSignup => api::initiate),
        endpoint!(api::bot_challenge),
        call!(signup::GetPendingSignup => api::pending),
        call!(signup::GetSignupStatus => api::status).without_head(),
        call!(signup::ApproveSignup as api::approve),
        call!(signup::SendVerificationLink => api::send_link),
        call!(signup::VerifyEmail => api::verify_email),
        call!(payments::CreateQuote => api::quote),
        call!(payments::ClaimQuote => api::claim),
        call!(keys::CreateChallenge => api::challenge),
        call!(keys::VerifyChallenge => api::verify),
        call!(keys::SendRecoveryLink => api::recovery_link),
        call!(keys::RecoverByLink => api::recover_by_link),
        call!(sessions::CreateSession as api::create_session),
        call!(sessions::ListSessions => api::sessions),
        call!(sessions::EndSessions as api::end_sessions),
        call!(sessions::EndSession as api::end_session),
        call!(sessions::SendSignInLink => api::sign_in_link),
        call!(sessions::SignInWithWallet => api::sign_in_with_wallet),
        call!(sessions::GetSignInAccount => api::sign_in_account),
        call!(sessions::SignInByLink as api::sign_in_by_link),
        call!(oauth::DescribeAuthorization => api::describe_authorization),
        call!(oauth::Consent => api::consent),
        endpoint!(api::oauth_register),
        endpoint!(api::oauth_token),
        endpoint!(api::oauth_revoke),
        endpoint!(api::oauth_service_metadata),
        endpoint!(api::oauth_resource_metadata),
        endpoint!(api::oauth_server_metadata),
        call!(billing::Deduct as api::deduct),
        call!(billing::Lookup => api::lookup),
        call!(billing::Hold as api::hold),
        call!(billing::Capture => api::capture),
        call!(billing::Release => api::release),
        call!(billing::Settle => api::settle),
        call!(payments::PayInternal as api::pay_internal),
        call!(payments::CreditPayment => api::credit_payment),
        call!(payments::ReversePayment => api::reverse_payment),
        endpoint!(api::health).everywhere(),
        endpoint!(api::ready).everywhere(),
        endpoint!(api::metrics).everywhere().compressed(),
        endpoint!(api::openapi_json).everywhere(),
        endpoint!(api::catalogue).everywhere(),
        call!(receipts::GetReceiptKeys as api::receipt_keys).everywhere(),
        endpoint!(api::did).everywhere(),
        endpoint!(api::x402).everywhere(),
        endpoint!(api::x402_json).everywhere(),
        endpoint!(api::log_checkpoint),
        endpoint!(api::log_tile).with_slashes(),
    ])
});

/// The endpoints at a path. A trailing slash makes no difference.
pub(crate) fn endpoints_at(path: &str) -> Option<Found<'static, App>> {
    ENDPOINTS.at(path)
}

/// Whether the path of an endpoint starts with this segment.
pub(crate) fn has_first_segment(segment: &str) -> bool {
    ENDPOINTS.iter().any(|endpoint| endpoint.path.split('/').nth(1) == Some(segment))
}

/// Whether every process serves the path, whichever surfaces it is configured for. A trailing slash makes a difference.
pub(crate) fn is_everywhere(path: &str) -> bool {
    ENDPOINTS.at(path).is_some_and(|found| found.is_everywhere(path))
}

/// Whether a path supports `HEAD`.
pub(crate) fn takes_head(path: &str) -> bool {
    ENDPOINTS.at(path).is_some_and(|found| found.takes_head())
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[test]
    fn sessions_stand_for_keys_on_calls_of_the_account_only() {
        // method, path, takes a session
        let table = [
            (Method::GET, "/credits/balance", true),
            (Method::POST, "/keys", true),
            (Method::POST, "/members", true),
            (Method::PUT, "/credits/buyer", true),
            (Method::GET, "/credits/receipt.pdf", true),
            (Method::DELETE, "/api-key/sessions/current", true),
            (Method::POST, "/oauth/consents", true),
            (Method::POST, "/oauth/token", false),
            (Method::POST, "/api-key/sessions", false),
            (Method::POST, "/api-key/recover/email", false),
            (Method::POST, "/signup/initiate", false),
            (Method::GET, "/health", false),
        ];
        for (method, path, expected) in table {
            assert_eq!(ENDPOINTS.at(path).unwrap().takes_session(&method), expected, "{method} {path}");
        }
        let mut internal = ENDPOINTS.iter().filter(|endpoint| endpoint.path.starts_with("/internal/"));
        assert!(internal.all(|endpoint| !endpoint.takes_session));
    }

    #[test]
    fn endpoints_are_found_by_path() {
        // A request's path, the path of its endpoints, the values of the parameters.
        let table: &[(&str, Option<&str>, &[&str])] = &[
            ("/health", Some("/health"), &[]),
            ("/health/", Some("/health"), &[]),
            ("/health//", None, &[]),
            ("/keys/key_1", Some("/keys/{id}"), &["key_1"]),
            ("/keys/a%2Fb%20c/", Some("/keys/{id}"), &["a/b c"]),
            ("/keys/%ff", None, &[]),
            ("/keys/", Some("/keys"), &[]),
            ("/keys/leaked", Some("/keys/leaked"), &[]),
            ("/members/log", Some("/members/log"), &[]),
            ("/keys/leaked/rotate", Some("/keys/{id}/rotate"), &["leaked"]),
            ("/log/1/checkpoint", Some("/log/{epoch}/checkpoint"), &["1"]),
            ("/log/1/tile/0/x001/234.p/7", Some("/log/{epoch}/tile/{path}"), &["1", "0/x001/234.p/7"]),
            ("/log/1/tile", None, &[]),
            ("/log/1/other", None, &[]),
            ("/", None, &[]),
            ("", None, &[]),
        ];
        for (path, expected, values) in table {
            let found = ENDPOINTS.at(path);
            assert_eq!(found.is_some(), expected.is_some(), "{path}");
            let Some(found) = found else { continue };
            assert!(found.endpoints().all(|endpoint| Some(&*endpoint.path) == *expected), "{path}");
            assert_eq!(found.parameters(), *values, "{path}");
        }
    }
}
