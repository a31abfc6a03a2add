//! The table of the operators' endpoints.

use std::sync::LazyLock;

use super::app::AdminApp;
use super::{
    attention, audit, call, catalogue, documents, health, oidc_sign_in, payments, receipts, reload, reports, session,
};
use crate::endpoints::{Table, endpoint};

/// All endpoints of the operators' API.
pub(super) static ENDPOINTS: LazyLock<Table<AdminApp>> = LazyLock::new(|| {
    let mut endpoints = vec![
        endpoint!(session::sign_in),
        endpoint!(session::session),
        endpoint!(session::sign_out),
        endpoint!(oidc_sign_in::provider),
        endpoint!(oidc_sign_in::start),
        endpoint!(oidc_sign_in::callback),
        endpoint!(catalogue::catalogue).compressed(),
        endpoint!(catalogue::check),
        endpoint!(catalogue::rehearse).compressed(),
        endpoint!(payments::arrivals).compressed(),
        endpoint!(payments::assign),
        endpoint!(receipts::receipt),
        endpoint!(receipts::receipt_pdf),
        endpoint!(reports::report).compressed(),
        endpoint!(reports::verify),
        endpoint!(attention::attention).compressed(),
        endpoint!(reload::reload),
        endpoint!(health::health),
        endpoint!(audit::audit_csv).compressed(),
        endpoint!(documents::openapi_json).compressed(),
    ];
    endpoints.extend(call::endpoints());
    Table::new(endpoints)
});
