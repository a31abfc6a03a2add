//! The rows that an account is imported from.

use super::cell::Cell;

/// The `session_id` of all accounts that were opened by a payment.
pub(super) const SHARED_SESSION: &str = "b0000000-0000-4000-8000-00000000pay1";

/// A row of `api_keys`, with its signup session.
#[derive(Debug, Clone, Default)]
pub struct AgentHubKey {
    /// `id`.
    pub id: String,
    /// `session_id`.
    pub session_id: Option<String>,
    /// `agent_name` of the session; `None` when there is no such session.
    pub session_name: Option<String>,
    /// `agent_name` of the payment quote that the key was issued for.
    pub quote_name: Option<String>,
    /// `email`, or that of the session.
    pub email: Option<String>,
    /// `api_key_hash`.
    pub hash: String,
    /// `org_id`.
    pub org_id: Option<String>,
    /// Whether an earlier row has the same `org_id`.
    pub org_id_is_repeated: bool,
    /// `credit_balance`.
    pub balance: Cell,
    /// `total_credits_purchased`.
    pub purchased: Cell,
    /// `total_credits_used`.
    pub used: Cell,
    /// `rate_limit_rpm`.
    pub per_minute: Cell,
    /// `rate_limit_rpd`.
    pub per_day: Cell,
    /// `created_at`.
    pub created_at: Option<String>,
    /// `revoked_at`.
    pub revoked_at: Option<String>,
    /// `payer_address`.
    pub payer: Option<String>,
}

impl AgentHubKey {
    /// Whether its session is the one shared by all accounts that were opened by a payment.
    pub(super) fn shares_session(&self) -> bool {
        self.session_id.as_deref() == Some(SHARED_SESSION)
    }
}

/// A row of `credit_transactions`.
#[derive(Debug, Clone, Default)]
pub struct AgentHubTransaction {
    /// `id`.
    pub id: String,
    /// `type`.
    pub kind: String,
    /// `amount`.
    pub amount: Cell,
    /// `description`.
    pub description: Option<String>,
    /// `http_method`.
    pub http_method: Option<String>,
    /// `route_template`.
    pub route_template: Option<String>,
    /// `client_source`.
    pub client_source: Option<String>,
    /// `tx_hash`.
    pub tx_hash: Option<String>,
    /// `chain_id`.
    pub chain_id: Cell,
    /// `plan_id`.
    pub plan_id: Option<String>,
    /// `created_at`.
    pub created_at: Option<String>,
}
