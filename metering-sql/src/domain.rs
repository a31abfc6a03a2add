//! The domain types that are stored as one value each.

use metering_core::access::{
    AgentName, BrowserSessionId, BrowserTokenHash, BudgetReset, DeviceName, Email, HashKind, Identity, KeyHash,
    KeyHint, KeyId, KeyName, KeyNumber, MemberId, MemberRole, Networks, RoutePatterns, Scopes,
};
use metering_core::chains::{Address, TokenUnits, TxHash, WalletSignature};
use metering_core::charging::{Fingerprint, HeldTokens, HoldId, SettleReason};
use metering_core::clock::Month;
use metering_core::events::{DeliveryId, DeliveryState, EventKind, EventKinds, WebhookId, WebhookSecret, WebhookState};
use metering_core::money::{Currency, LedgerKind};
use metering_core::oauth::{CodeChallenge, GrantId, GrantTokenHash, RedirectUri};
use metering_core::offers::{AuthorizationNonce, IdentifierHash, SettlementFailure};
use metering_core::operators::{Actor, AuditId, AuditResult, OperatorName, OperatorTokenHash, Role};
use metering_core::payments::{
    CurrencyAmount, ExchangeRate, NonceHash, NumberPrefix, PaymentUse, TaxRate, TopUpChargeId, TopUpChargeState,
    TopUpStop,
};
use metering_core::prices::{CatalogueHash, PriceNumber};
use metering_core::signups::{LinkHash, LinkPurpose, SessionHash, UserCode};
use metering_core::store::{EpochReason, SourceId};
use metering_core::{AccountId, Credits, Day, RequestId, Timestamp};

use crate::value::{FromValue, ToValue, Value};

/// Domain types that wrap what is stored: the type, how to construct it, and how to read the wrapped value.
macro_rules! wrappers {
    ($($wrapper:ty: $stored:ty, $from:expr, $to:expr;)*) => {
        $(impl ToValue for $wrapper {
            const NULL: Value = <$stored as ToValue>::NULL;

            fn to_value(&self) -> Value {
                let to: fn(&Self) -> $stored = $to;
                to(self).to_value()
            }
        }

        impl FromValue for $wrapper {
            fn from_value(value: &Value) -> Option<Self> {
                <$stored>::from_value(value).map($from)
            }
        })*
    };
}

wrappers! {
    Timestamp: i64, Self::from_unix_millis, |time| time.unix_millis();
    KeyNumber: u32, Self::new, |number| number.get();
    Day: i64, Self::from_unix_days, |day| day.unix_days();
    Month: i64, Self::from_unix_months, |month| month.unix_months();
    Credits: i64, Self::from_atoms, |credits| credits.atoms();
    Address: [u8; 20], Self::from_bytes, |address| *address.as_bytes();
    TxHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    TokenUnits: [u8; 16], |bytes| Self::new(u128::from_be_bytes(bytes)), |units| units.get().to_be_bytes();
    BrowserSessionId: [u8; 16], Self::from_bytes, |id| *id.as_bytes();
    BrowserTokenHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    KeyHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    GrantId: [u8; 16], Self::from_bytes, |id| *id.as_bytes();
    GrantTokenHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    AuthorizationNonce: [u8; 32], Self::from_bytes, |nonce| *nonce.as_bytes();
    IdentifierHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    NonceHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    Fingerprint: [u8; 16], Self::from_bytes, |fingerprint| *fingerprint.as_bytes();
    HoldId: [u8; 16], Self::from_bytes, |id| *id.as_bytes();
    TopUpChargeId: [u8; 16], Self::from_bytes, |id| *id.as_bytes();
    LinkHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    MemberId: [u8; 16], Self::from_bytes, |id| *id.as_bytes();
    SessionHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    DeliveryId: i64, Self::new, |id| id.get();
    WebhookId: [u8; 16], Self::from_bytes, |id| *id.as_bytes();
    SourceId: [u8; 16], Self::from_bytes, |id| *id.as_bytes();
    OperatorTokenHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    CatalogueHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    AuditId: i64, Self, |id| id.0;
    PriceNumber: u32, Self, |number| number.0;
}

/// Domain types that are stored as their text.
macro_rules! texts {
    ($($domain:ty),*) => {
        $(impl ToValue for $domain {
            const NULL: Value = Value::Text(None);

            fn to_value(&self) -> Value {
                Value::Text(Some(self.to_string()))
            }
        }

        impl FromValue for $domain {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Text(Some(text)) => text.parse().ok(),
                    _ => None,
                }
            }
        })*
    };
}

texts!(
    AccountId,
    Actor,
    AgentName,
    BudgetReset,
    CodeChallenge,
    Currency,
    CurrencyAmount,
    DeviceName,
    Email,
    EventKinds,
    ExchangeRate,
    HashKind,
    HeldTokens,
    Identity,
    KeyHint,
    KeyId,
    KeyName,
    Networks,
    NumberPrefix,
    OperatorName,
    RedirectUri,
    RoutePatterns,
    Scopes,
    TaxRate,
    UserCode
);

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

/// Domain types that are stored as their name: the type, and how to find it by its name.
macro_rules! names {
    ($($domain:ty: $from:expr;)*) => {
        $(impl ToValue for $domain {
            const NULL: Value = Value::Text(None);

            fn to_value(&self) -> Value {
                self.as_str().to_value()
            }
        }

        impl FromValue for $domain {
            fn from_value(value: &Value) -> Option<Self> {
                let from: fn(&str) -> Option<Self> = $from;
                from(&String::from_value(value)?)
            }
        })*
    };
}

names! {
    AuditResult: Self::from_name;
    DeliveryState: Self::from_name;
    EpochReason: Self::from_name;
    EventKind: Self::from_name;
    LedgerKind: Self::from_name;
    LinkPurpose: |name| name.parse().ok();
    MemberRole: Self::from_name;
    PaymentUse: Self::from_name;
    RequestId: |id| Self::from_stored(id).ok();
    Role: |name| name.parse().ok();
    SettleReason: Self::from_name;
    SettlementFailure: Self::from_name;
    TopUpChargeState: Self::from_name;
    TopUpStop: Self::from_name;
    WebhookState: Self::from_name;
}
