//! The types of parameters, and their text in a path or a query.

use std::borrow::Cow;
use std::str::FromStr;

use crate::AccountId;
use crate::access::{KeyId, RoutePatterns};
use crate::charging::HoldId;
use crate::clock::{CalendarPeriod, Day};
use crate::events::{DeliveryId, DeliveryState, WebhookId};
use crate::operators::{AccountState, ListOrder, OperatorName, PaymentState};
use crate::prices::PriceNumber;
use crate::store::Cursor;

/// A type of parameters that has a text.
pub trait Text: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// The problem with the text.
    fn read(text: &str) -> Result<Self, String>;

    /// Writes it.
    fn write(&self) -> Cow<'_, str>;

    /// Its schema in the OpenAPI document.
    #[cfg(feature = "openapi")]
    fn described() -> utoipa::openapi::RefOr<utoipa::openapi::Schema>;
}

/// Implements [`Text`]: `TYPE as TYPE IN OPENAPI: how it is read, how it is written`.
macro_rules! texts {
    ($($type:ty as $described:ty: $read:expr, $write:expr;)*) => {$(
        impl Text for $type {
            fn read(text: &str) -> Result<Self, String> {
                let read: fn(&str) -> Result<Self, String> = $read;
                read(text)
            }

            fn write(&self) -> Cow<'_, str> {
                let write: fn(&Self) -> Cow<'_, str> = $write;
                write(self)
            }

            #[cfg(feature = "openapi")]
            fn described() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                <$described as utoipa::PartialSchema>::schema()
            }
        }
    )*};
}

texts! {
    AccountId as String: parsed, |id| id.as_str().into();
    KeyId as String: parsed, |id| id.to_string().into();
    HoldId as String: parsed, |id| id.to_string().into();
    WebhookId as String: parsed, |id| id.to_string().into();
    OperatorName as String: parsed, |name| name.as_str().into();
    String as String: |text| Ok(text.to_owned()), |text| text.as_str().into();
    Cursor as String: |text| Ok(Self::new(text.to_owned())), |cursor| cursor.as_str().into();
    DeliveryState as String: |name| {
        one_of(Self::from_name(name), &Self::ALL.map(Self::as_str))
    }, |state| state.as_str().into();
    AccountState as String: |name| {
        one_of(Self::from_name(name), &Self::ALL.map(Self::as_str))
    }, |state| state.as_str().into();
    PaymentState as String: |name| {
        one_of(Self::from_name(name), &Self::ALL.map(Self::as_str))
    }, |state| state.as_str().into();
    ListOrder as String: |name| {
        one_of(Self::from_name(name), &Self::ALL.map(Self::as_str))
    }, |order| order.as_str().into();
    DeliveryId as i64: |text| parsed(text).map(Self::new), |id| id.get().to_string().into();
    PriceNumber as u32: |text| parsed(text).map(Self), |number| number.to_string().into();
    Day as String: parsed, |day| day.to_string().into();
    CalendarPeriod as String: parsed, |period| period.to_string().into();
    RoutePatterns as String: |text| Self::parse([text]).map_err(|problem| problem.to_string()),
        |patterns| patterns.to_string().into();
    bool as bool: |text| text.parse().map_err(|_| "must be true or false".to_owned()), |truth| truth.to_string().into();
    u64 as u64: |text| text.parse().map_err(|_| "must be a whole number".to_owned()), |number| number.to_string().into();
    EntryNumber as i64: |text| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| digits).map(Self).ok_or_else(|| "must be a whole number".to_owned())
    }, |number| number.0.to_string().into();
}

/// The number of an entry of the ledger or of the audit log, to continue from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryNumber(pub i64);

fn one_of<T>(named: Option<T>, names: &[&str]) -> Result<T, String> {
    named.ok_or_else(|| format!("must be one of {}", names.join(", ")))
}

fn parsed<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|problem: T::Err| problem.to_string())
}
