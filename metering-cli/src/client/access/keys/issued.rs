//! A new secret: gets it from the service, and stores or prints it, once.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use metering_client::{ClientError, Response};
use metering_core::ApiKey;
use metering_core::charging::IdempotencyKey;
use metering_core::wire::KeyDocument;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::client::access::profile::Profile;
use crate::client::session::Session;
use crate::failure::Failure;
use crate::json::write_as_sent;
use crate::output::{notice, write_json};
use crate::table::write_pairs;

/// How often a request without a response is retried before the command gives up.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// The response with a new secret.
#[derive(Deserialize)]
struct Body {
    key: Zeroizing<String>,
    data: KeyDocument,
}

/// A secret that has not been shown yet, and its key.
#[derive(Debug)]
pub(super) struct Issued {
    secret: ApiKey,
    key: KeyDocument,
}

/// The JSON output when the secret is in a profile.
#[derive(Serialize)]
struct Stored<'a> {
    data: &'a KeyDocument,
    profile: String,
    stored_in: PathBuf,
}

/// Sends a request until its response arrives. The request has an idempotency key, with which the service returns the
/// same secret again.
pub(in crate::client::access) async fn attempts(
    idempotency_key: &IdempotencyKey,
    send: impl AsyncFn() -> Result<Response, ClientError>,
) -> Result<Response, Failure> {
    for attempt in 1.. {
        let error = match send().await {
            Ok(response) => return Ok(response),
            Err(ClientError::Refused(refusal)) if !refusal.status.is_server_error() => {
                return Err(ClientError::Refused(refusal).into());
            }
            Err(error) => error,
        };
        if attempt == ATTEMPTS {
            return Err(Failure::TryLater(format!(
                "the response was lost ({error}), so it may have been done. To get the result, run the same command again \
                 with --idempotency-key {}",
                idempotency_key.as_str()
            )));
        }
        tokio::time::sleep(PAUSE).await;
    }
    unreachable!("the last attempt returns")
}

impl Issued {
    pub(super) fn read(response: &Response) -> Result<Self, Failure> {
        let Body { key, data } = response.json()?;
        let secret = ApiKey::parse(&key);
        let secret = secret.map_err(|_| Failure::Failed("the service's response has no valid key".to_owned()))?;
        Ok(Self { secret, key: data })
    }

    /// Stores the secret in a profile, or prints it. It can never be printed again, so even a closed pipe is a failure
    /// here, and the error says what to do.
    pub(super) fn deliver(
        self,
        session: &Session,
        destination: Option<Profile>,
        response: &Response,
        json: bool,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let Some(mut profile) = destination else {
            return self
                .print(response, json, out)
                .and_then(|()| Ok(out.flush()?))
                .map_err(|failure| self.lost(&failure));
        };
        profile.settings.url = Some(session.url().clone());
        // The profile's account is that of its own key, which a key from the environment may override.
        let own = &session.profile.settings;
        let is_own = own.api_key.as_ref().map(ApiKey::hash) == session.key().ok().map(ApiKey::hash);
        profile.settings.org_id = own.org_id.clone().filter(|_| is_own);
        profile.settings.api_key = Some(self.secret.clone());
        profile.save().map_err(|failure| self.lost(&failure))?;
        let (name, stored_in) = (profile.name().to_string(), profile.path());
        if json {
            return write_json(out, &Stored { data: &self.key, profile: name, stored_in });
        }
        let place = format!("in profile {name}");
        write_pairs(out, &[("Key", &self.key.id), ("Name", &self.key.name), ("API key", &place)])
    }

    fn print(&self, response: &Response, json: bool, out: &mut dyn Write) -> Result<(), Failure> {
        if json {
            return write_as_sent(out, &response.body);
        }
        let (key, secret) = (&self.key, self.secret.expose());
        write_pairs(out, &[("Key", &key.id), ("Name", &key.name), ("API key", &secret)])?;
        out.flush()?;
        notice(&format!(
            "The API key is shown only once; save it now. If it is lost, replace it with\n  metering keys rotate {}",
            key.id
        ));
        Ok(())
    }

    fn lost(&self, failure: &Failure) -> Failure {
        let id = &self.key.id;
        Failure::Failed(format!(
            "could not write the new secret of key {id} ({failure}), so it is lost; get another with \
             `metering keys rotate {id}`"
        ))
    }
}
