//! Keys of an account, as a server lists and changes them.

use http::Method;
use metering_client::Response;
use metering_core::access::KeyId;
use metering_core::wire::admin::{KeyChangeRequest, KeyRotationRequest, NewKeyRequest};
use metering_core::wire::{
    ChangeKeyRequest, CreateKeyRequest, KeyDocument, KeyResponse, KeysDocument, RotateKeyRequest,
};
use metering_core::{AccountId, ApiKey};
use serde::Deserialize;

use super::{Remote, escaped};
use crate::failure::Failure;

/// A response that issues a secret.
#[derive(Deserialize)]
struct IssuedSecret {
    key: String,
    data: KeyDocument,
}

impl Remote {
    pub(super) async fn all_keys(&self, id: &AccountId) -> Result<Vec<KeyDocument>, Failure> {
        let first = format!("/admin/accounts/{id}/keys?limit=1000");
        let (mut keys, mut target) = (Vec::new(), first.clone());
        loop {
            let page: KeysDocument = self.get(&target).await?.json()?;
            keys.extend(page.data);
            match page.next {
                Some(next) => target = format!("{first}&after={}", escaped(&next)),
                None => return Ok(keys),
            }
        }
    }

    pub(super) async fn one_key(&self, id: &AccountId, key: &KeyId) -> Result<KeyDocument, Failure> {
        let KeyResponse { data } = self.get(&format!("/admin/accounts/{id}/keys/{key}")).await?.json()?;
        Ok(data)
    }

    pub(super) async fn create(&self, id: &AccountId, key: CreateKeyRequest) -> Result<(KeyDocument, ApiKey), Failure> {
        let request = NewKeyRequest { key, reason: self.reason.clone() };
        issued(&self.send(Method::POST, &format!("/admin/accounts/{id}/keys"), &request).await?)
    }

    pub(super) async fn change(
        &self,
        id: &AccountId,
        key: &KeyId,
        change: ChangeKeyRequest,
    ) -> Result<KeyDocument, Failure> {
        let request = KeyChangeRequest { change, reason: self.reason.clone() };
        let target = format!("/admin/accounts/{id}/keys/{key}/change");
        let KeyResponse { data } = self.send(Method::POST, &target, &request).await?.json()?;
        Ok(data)
    }

    pub(super) async fn rotate(
        &self,
        id: &AccountId,
        key: &KeyId,
        rotation: RotateKeyRequest,
    ) -> Result<(KeyDocument, ApiKey), Failure> {
        let request = KeyRotationRequest { grace_seconds: rotation.grace_seconds, reason: self.reason.clone() };
        issued(&self.send(Method::POST, &format!("/admin/accounts/{id}/keys/{key}/rotate"), &request).await?)
    }

    pub(super) async fn delete(&self, id: &AccountId, key: &KeyId) -> Result<(), Failure> {
        self.act(id, &format!("keys/{key}/delete")).await.map(drop)
    }
}

fn issued(response: &Response) -> Result<(KeyDocument, ApiKey), Failure> {
    let IssuedSecret { key, data } = response.json()?;
    let key = ApiKey::parse(&key).map_err(|_| Failure::Failed("the server's response has no key".to_owned()))?;
    Ok((data, key))
}
