//! A newly generated key. It can be printed only once, because the store keeps only its hash.

use std::io::Write;

use metering_admin::wire::AccountDocument;
use metering_core::{Credits, wire};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::write_json;
use crate::table::write_pairs;

/// A key that has not been shown yet.
#[derive(Debug)]
pub(crate) struct IssuedKey(pub(crate) wire::IssuedKey);

#[derive(Debug, Serialize)]
struct Document<'a> {
    org_id: &'a str,
    api_key: &'a str,
    credit_balance: Credits,
}

impl IssuedKey {
    /// Prints the key. It can never be printed again, so even a closed pipe is a failure here, and the error says what
    /// to do.
    pub(crate) fn print(self, out: &mut dyn Write, json: bool, account: &AccountDocument) -> Result<(), Failure> {
        let id = &account.org_id;
        self.write(out, json, account).and_then(|()| Ok(out.flush()?)).map_err(|failure| {
            Failure::Failed(format!(
                "could not print the new key of account {id} ({failure}), so it is lost; create another with \
                 `metering admin account rotate-key {id}`"
            ))
        })
    }

    fn write(&self, out: &mut dyn Write, json: bool, account: &AccountDocument) -> Result<(), Failure> {
        let (org_id, api_key, credit_balance) =
            (account.org_id.as_str(), self.0.key().expose(), account.credit_balance);
        if json {
            return write_json(out, &Document { org_id, api_key, credit_balance });
        }
        write_pairs(out, &[("Account", &org_id), ("API key", &api_key), ("Balance", &credit_balance)])?;
        writeln!(out, "\nThe key is shown only once; save it now. If it is lost, replace it with")?;
        Ok(writeln!(out, "  metering admin account rotate-key {org_id}")?)
    }
}
