//! Secrets of webhooks and signatures of wallets, which are checked when they are read.

use metering_core::chains::WalletSignature;
use metering_core::events::WebhookSecret;

use super::{FromValue, ToValue, Value};

impl ToValue for WebhookSecret {
    const NULL: Value = Value::Text(None);

    fn to_value(&self) -> Value {
        self.expose().as_str().to_value()
    }
}

impl FromValue for WebhookSecret {
    fn from_value(value: &Value) -> Option<Self> {
        Self::parse(&String::from_value(value)?).ok()
    }
}

impl ToValue for WalletSignature {
    const NULL: Value = Value::Bytes(None);

    fn to_value(&self) -> Value {
        self.as_bytes().to_value()
    }
}

impl FromValue for WalletSignature {
    fn from_value(value: &Value) -> Option<Self> {
        Self::from_bytes(Vec::from_value(value)?).ok()
    }
}
