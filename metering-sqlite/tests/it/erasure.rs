//! Erasures: nothing readable stays in the file, and no new column is forgotten.

use std::collections::BTreeSet;

use metering_core::access::SignInProof;
use metering_core::signups::LinkHash;
use metering_core::store::{MemberStore, OperatorStore};
use metering_core::{NewAccount, Store};
use metering_sqlite::SqliteStore;
use rusqlite::Connection;

use crate::scene::{NOON, created, database_path, new_account};

/// Every column with text, as `table.column`. `metering_sql::erasure` takes what people wrote or are called by in the
/// first list. The second account has what stays; docs/privacy.md explains why.
const ERASED: &str = "account.agent_name account.email account.email_folded api_key.hint api_key.name \
    api_key.networks audit_entry.before audit_entry.reason audit_entry.request audit_outcome.after \
    audit_outcome.detail auto_top_up.brand auto_top_up.currency auto_top_up.customer auto_top_up.last4 \
    auto_top_up.method auto_top_up.plan_id auto_top_up.stopped browser_session.device buyer.address buyer.name \
    buyer.tax_id challenge.message challenge.nonce challenge.org_id delivery.last_error delivery.last_response \
    delivery.state email_link.purpose event.data event.kind hold.request_path oauth_grant.challenge \
    oauth_grant.client oauth_grant.key oauth_grant.parent oauth_grant.redirect_uri oauth_grant.resource \
    oauth_grant.terms quote.agent_name quote.email signup.agent_name signup.email signup.user_code \
    top_up_charge.brand top_up_charge.customer top_up_charge.last4 top_up_charge.method webhook.kinds \
    webhook.old_secret webhook.secret webhook.state webhook.url account_log.action account_log.actor \
    account_log.actor_name account_log.subject account_member.identity account_member.identity_key account_member.role \
    invitation.email invitation.role sign_in_proof.identity";
const KEPT: &str = "account.org_id api_key.budget_reset api_key.public_id api_key.routes api_key.scopes \
    audit_entry.action audit_entry.actor audit_entry.subject audit_outcome.result hold.reason hold.tokens \
    hold.upstream issued_receipt.series key_secret.hash_kind ledger.description ledger.kind ledger.plan_id log_epoch.checkpoint \
     log_epoch.node log_epoch.origin log_epoch.previous_origin log_epoch.reason log_line.http_method log_line.route_template log_line.source \
     moved.destination \
    oauth_client.id oauth_client.name oauth_client.redirect_uris operator.name operator.role payment.plan_id \
    payment.plan_label payment.processor payment.processor_id payment.settlement payment.token_symbol \
    payment.used_as payment.value_amount payment.value_currency payment.value_rate payment.value_source \
    payment_authorization.failure payment_authorization.state payment_reversal.interruptions payment_reversal.processor payment_reversal.reason \
    payment_reversal.reversal_id plan.definition plan.id price_version.applied_by price_version.catalogue \
    quote.plan_id quote.state receipt_terms.number_prefix receipt_terms.seller_address receipt_terms.seller_contact \
    receipt_terms.seller_name receipt_terms.seller_tax_id receipt_terms.tax_name receipt_terms.tax_rate refill.every request_id.request_id route_volume.http_method route_volume.returned \
    route_volume.route_template top_up_charge.currency top_up_charge.plan_id top_up_charge.state \
    unreadable_arrival.reason usage_line.http_method usage_line.route_template usage_line.source \
    usage_sent.http_method usage_sent.key_id usage_sent.route_template usage_sent.sink usage_sent.source \
    usage_sink.last_error usage_sink.last_response usage_sink.name usage_sink.state";

#[test]
fn every_column_with_text_is_erased_or_kept_on_purpose() {
    let (_folder, file) = database_path();
    drop(SqliteStore::create(&file).unwrap());
    let connection = Connection::open(&file).unwrap();
    let sql = "SELECT t.name || '.' || c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c \
               WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND c.type = 'TEXT'";
    let mut statement = connection.prepare(sql).unwrap();
    let found: BTreeSet<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let known: BTreeSet<String> = format!("{ERASED} {KEPT}").split_whitespace().map(str::to_owned).collect();
    let new: Vec<_> = found.symmetric_difference(&known).collect();
    assert!(new.is_empty(), "decide whether an erasure takes these columns: {new:?}");
}

#[tokio::test]
async fn an_erased_address_is_not_in_the_file() {
    let (_folder, file, store) = created();
    let email = Some("Quillfeather@example.com".parse().unwrap());
    let new = NewAccount { agent_name: "quillfeather-agent".parse().unwrap(), email, ..new_account() };
    let id = new.id.clone();
    store.create_account(new).await.unwrap();
    let (token, identity) = (LinkHash::from_bytes([1; 32]), "quillFEATHER@example.com".parse().unwrap());
    store.open_sign_in(SignInProof { token, identity, invitation: None, expires_at: NOON }).await.unwrap();
    store.erase_account(&id, false, NOON).await.unwrap().expect("the account exists");
    drop(store);
    let bytes = std::fs::read(&file).unwrap().to_ascii_lowercase();
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has(&id.as_str().to_ascii_lowercase()), "the account is there");
    assert!(!has("quillfeather"), "nothing else is");
}
