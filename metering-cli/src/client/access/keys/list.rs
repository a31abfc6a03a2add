//! `keys list`: the profile's key and its child keys.

use std::io::Write;

use clap::Args;
use metering_client::calls::keys::{KeysPage, ListKeys};
use metering_core::store::Cursor;
use metering_core::wire::KeyDocument;
use metering_core::wire::call::Bounded;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::client::session::ProfileArgs;
use crate::failure::Failure;
use crate::keys::document;
use crate::output::{Format, write_json};

/// List the profile's key and its child keys, oldest first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering keys list
  metering keys list --json")]
pub(super) struct ListArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    format: Format,
}

/// A part of the list. Each key stays as the service wrote it.
#[derive(Deserialize)]
struct Page {
    data: Vec<Box<RawValue>>,
    next: Option<String>,
}

/// The whole list.
#[derive(Serialize)]
struct Document {
    data: Vec<Box<RawValue>>,
}

impl ListArgs {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        let (mut data, mut keys) = (Vec::new(), KeysPage { limit: Bounded::MAX, after: None });
        loop {
            let page: Page = client.call::<ListKeys>(&keys, &()).await?.json()?;
            data.extend(page.data);
            keys.after = page.next.map(Cursor::new);
            if keys.after.is_none() {
                break;
            }
        }
        if self.format.json {
            return write_json(out, &Document { data });
        }
        let parsed = data.iter().map(|key| serde_json::from_str(key.get())).collect::<Result<Vec<KeyDocument>, _>>();
        let parsed =
            parsed.map_err(|error| Failure::Failed(format!("could not read the service's response: {error}")))?;
        document::write_list(out, &parsed)
    }
}
