//! Alerts as mail: the text for the account's owner about credits that run out.

use serde::Deserialize;

use crate::events::EventKind;
use crate::money::credits::{Credits, printed_if_any};
use crate::payments::auto_top_up::TopUpStop;

/// The subject of a mailed alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailedAlert {
    /// The balance fell below the account's threshold.
    BalanceLow {
        /// The balance then.
        balance: Credits,
        /// The threshold.
        threshold: Credits,
    },
    /// The balance is used up, or did not cover a request.
    BalanceExhausted {
        /// The balance then.
        balance: Credits,
    },
    /// Less remains of a key's budget than its threshold.
    BudgetLow {
        /// The key's name.
        key_name: String,
        /// The remaining credits.
        remaining: Credits,
        /// The budget.
        limit: Credits,
    },
    /// The budget of a key is used up.
    BudgetExhausted {
        /// The key's name.
        key_name: String,
        /// The budget.
        limit: Credits,
    },
    /// Automatic top-ups stopped.
    TopUpStopped {
        /// Why.
        reason: TopUpStop,
    },
    /// A test: no event caused it.
    Test,
}

impl MailedAlert {
    /// Reads the body of an event. `None` for events that are not mailed.
    ///
    /// ```
    /// use metering_core::signups::MailedAlert;
    ///
    /// let body = r#"{"type": "balance.exhausted", "timestamp": "2026-11-21T12:00:00.512Z", "data": {"balance": 0}}"#;
    /// assert_eq!(MailedAlert::read(body), Some(MailedAlert::BalanceExhausted { balance: "0".parse()? }));
    /// # Ok::<(), metering_core::money::DecimalError>(())
    /// ```
    #[must_use]
    pub fn read(body: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Body {
            #[serde(rename = "type")]
            kind: String,
            data: Data,
        }
        #[derive(Deserialize)]
        struct Data {
            #[serde(default, deserialize_with = "printed_if_any")]
            balance: Option<Credits>,
            #[serde(default, deserialize_with = "printed_if_any")]
            threshold: Option<Credits>,
            key_name: Option<String>,
            #[serde(default, deserialize_with = "printed_if_any")]
            limit: Option<Credits>,
            #[serde(default, deserialize_with = "printed_if_any")]
            limit_remaining: Option<Credits>,
            reason: Option<String>,
        }
        let Body { kind, data } = serde_json::from_str(body).ok()?;
        match (EventKind::from_name(&kind)?, data.key_name) {
            (EventKind::BalanceLow, None) => {
                Some(Self::BalanceLow { balance: data.balance?, threshold: data.threshold? })
            }
            (EventKind::BalanceLow, Some(key_name)) => {
                Some(Self::BudgetLow { key_name, remaining: data.limit_remaining?, limit: data.limit? })
            }
            (EventKind::BalanceExhausted, _) => Some(Self::BalanceExhausted { balance: data.balance? }),
            (EventKind::BudgetExhausted, Some(key_name)) => {
                Some(Self::BudgetExhausted { key_name, limit: data.limit? })
            }
            (EventKind::TopUpStopped, _) => Some(Self::TopUpStopped { reason: TopUpStop::from_name(&data.reason?)? }),
            (EventKind::WebhookTest, _) => Some(Self::Test),
            _ => None,
        }
    }

    /// The balance, if it is about that.
    #[must_use]
    pub const fn balance(&self) -> Option<Credits> {
        match self {
            Self::BalanceLow { balance, .. } | Self::BalanceExhausted { balance } => Some(*balance),
            Self::BudgetLow { .. } | Self::BudgetExhausted { .. } | Self::TopUpStopped { .. } | Self::Test => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::events::{Event, EventData, NewEvent};

    fn read(data: EventData) -> Option<MailedAlert> {
        let account = "org_xxxxxxxxxxxxxxxxxxxx".parse().ok();
        let new = NewEvent { account, data, created_at: Timestamp::from_unix_millis(0) };
        MailedAlert::read(&Event::of(&new, 1).body().unwrap())
    }

    #[test]
    fn alerts_are_read_with_every_digit() {
        let (balance, threshold) = (Credits::from_atoms(1), Credits::from_atoms(7));
        let low = read(EventData::BalanceLow { balance, threshold });
        assert_eq!(low, Some(MailedAlert::BalanceLow { balance, threshold }));
        let required = Some(threshold);
        let exhausted = read(EventData::BalanceExhausted { balance, required });
        assert_eq!(exhausted, Some(MailedAlert::BalanceExhausted { balance }));
        let reason = TopUpStop::Declined;
        let stopped = read(EventData::TopUpStopped { reason, plan_id: "starter".to_owned() });
        assert_eq!(stopped, Some(MailedAlert::TopUpStopped { reason }));
        assert_eq!(read(EventData::TEST), Some(MailedAlert::Test));
    }

    #[test]
    fn the_alert_of_a_budget_names_its_key() {
        let data = r#"{"key_name": "batch", "limit": 10, "limit_remaining": 0.9998611111, "threshold": 1}"#;
        let body = |kind: &str| format!(r#"{{"type": "{kind}", "data": {data}}}"#);
        let (key_name, limit) = ("batch".to_owned(), "10".parse().unwrap());
        let remaining = Credits::from_printed("0.9998611111").unwrap();
        let low = MailedAlert::BudgetLow { key_name: key_name.clone(), remaining, limit };
        assert_eq!(MailedAlert::read(&body("balance.low")), Some(low));
        let exhausted = MailedAlert::BudgetExhausted { key_name, limit };
        assert_eq!(MailedAlert::read(&body("budget.exhausted")), Some(exhausted));
    }

    #[test]
    fn other_events_are_not_mailed() {
        for body in [r#"{"type": "key.created", "data": {"key_name": "x"}}"#, r#"{"type": "new", "data": {}}"#, "x"] {
            assert_eq!(MailedAlert::read(body), None, "{body}");
        }
    }
}
