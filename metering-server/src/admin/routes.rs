//! The table of the operators' endpoints.

use std::sync::LazyLock;

use super::app::AdminApp;
use super::{
    accounts, audit, documents, health, keys, operators, payments, plans, prices, refills, reload, reports, requests,
    session, webhooks,
};
use crate::endpoints::{Table, endpoint};

/// All endpoints of the operators' API.
pub(super) static ENDPOINTS: LazyLock<Table<AdminApp>> = LazyLock::new(|| {
    Table::new(vec![
        endpoint!(session::sign_in),
        endpoint!(session::session),
        endpoint!(session::sign_out),
        endpoint!(accounts::accounts).compressed(),
        endpoint!(accounts::create_account),
        endpoint!(accounts::account),
        endpoint!(accounts::account_ledger).compressed(),
        endpoint!(accounts::account_usage).compressed(),
        endpoint!(accounts::account_activity).compressed(),
        endpoint!(accounts::account_payments).compressed(),
        endpoint!(accounts::grant),
        endpoint!(accounts::adjust),
        endpoint!(accounts::limits),
        endpoint!(webhooks::set_alert),
        endpoint!(accounts::revoke),
        endpoint!(accounts::rotate_key),
        endpoint!(keys::keys).compressed(),
        endpoint!(keys::create_key),
        endpoint!(keys::key),
        endpoint!(keys::change_key),
        endpoint!(keys::rotate_key_by_id),
        endpoint!(keys::delete_key),
        endpoint!(requests::held_requests).compressed(),
        endpoint!(requests::held_request),
        endpoint!(plans::plans).compressed(),
        endpoint!(plans::put_plan),
        endpoint!(plans::activate_plan),
        endpoint!(plans::deactivate_plan),
        endpoint!(plans::remove_plan),
        endpoint!(refills::refill),
        endpoint!(refills::set_refill),
        endpoint!(refills::remove_refill),
        endpoint!(plans::catalogue).compressed(),
        endpoint!(plans::check),
        endpoint!(prices::versions).compressed(),
        endpoint!(prices::catalogue).compressed(),
        endpoint!(prices::apply),
        endpoint!(prices::cancel),
        endpoint!(payments::payments).compressed(),
        endpoint!(payments::arrivals).compressed(),
        endpoint!(payments::assign),
        endpoint!(webhooks::webhooks).compressed(),
        endpoint!(webhooks::deliveries).compressed(),
        endpoint!(webhooks::resend),
        endpoint!(webhooks::test),
        endpoint!(webhooks::remove),
        endpoint!(reports::report).compressed(),
        endpoint!(reports::usage).compressed(),
        endpoint!(reports::verify),
        endpoint!(reload::reload),
        endpoint!(health::health),
        endpoint!(audit::audit).compressed(),
        endpoint!(audit::audit_csv).compressed(),
        endpoint!(operators::operators),
        endpoint!(operators::create_operator),
        endpoint!(operators::rotate_operator_token),
        endpoint!(operators::revoke_operator),
        endpoint!(documents::openapi_json).compressed(),
    ])
});
