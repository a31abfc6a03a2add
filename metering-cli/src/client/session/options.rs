//! The options of nearly all client commands.

use std::io::Write;

use clap::Args;
use metering_client::{Client, Response};
use metering_core::wire::call::Call;
use serde::de::DeserializeOwned;

use crate::client::session::documents::Document;
use crate::client::session::{ProfileArgs, Session};
use crate::failure::Failure;
use crate::output::Format;

/// The profile that makes the calls, and the output format.
#[derive(Debug, Args)]
pub(crate) struct CallOptions {
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    format: Format,
}

impl CallOptions {
    /// Reads the profile and the environment; nothing is sent yet.
    pub(crate) fn open(&self) -> Result<Session, Failure> {
        self.profile.open()
    }

    /// A client with the account's key.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        self.open()?.client()
    }

    /// Whether responses are printed as JSON.
    pub(crate) const fn json(&self) -> bool {
        self.format.json
    }

    /// Makes a call with the account's key, and prints its response as [`Self::print`] does.
    pub(crate) async fn call<C>(
        &self,
        parameters: &C::Parameters,
        body: &C::Body,
        out: &mut dyn Write,
        write: impl FnOnce(&C::Reply, &mut dyn Write) -> Result<(), Failure>,
    ) -> Result<(), Failure>
    where
        C: Call<Reply: DeserializeOwned>,
    {
        self.print::<C::Reply>(self.client()?.call::<C>(parameters, body).await?, out, write)
    }

    /// Prints a response: as the service sent it for programs, and with `write` for people.
    pub(crate) fn print<T: DeserializeOwned>(
        &self,
        response: Response,
        out: &mut dyn Write,
        write: impl FnOnce(&T, &mut dyn Write) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let document: Document<T> = Document::of(response)?;
        if self.format.json { document.write_json(out) } else { write(&document.content, out) }
    }
}
