//! A new secret. It can be printed only once, because the store keeps only its hash.

use std::io::Write;

use metering_core::AccountId;
use metering_core::wire::IssuedKeyResponse;

use crate::failure::Failure;
use crate::output::write_json;
use crate::table::write_pairs;

/// The secret of a key that has not been shown yet.
pub(super) struct IssuedSecret<'a> {
    pub(super) org: &'a AccountId,
    pub(super) issued: IssuedKeyResponse,
}

impl IssuedSecret<'_> {
    /// Prints the secret. It can never be printed again, so even a closed pipe is a failure here, and the error says
    /// what to do.
    pub(super) fn print(self, out: &mut dyn Write, json: bool) -> Result<(), Failure> {
        let key = &self.issued.data;
        let again = format!("metering admin key rotate {} {}", self.org, key.id);
        self.write(out, json, &again).and_then(|()| Ok(out.flush()?)).map_err(|failure| {
            Failure::Failed(format!(
                "could not print the new secret of key {} ({failure}), so it is lost; get another with `{again}`",
                key.id
            ))
        })
    }

    fn write(&self, out: &mut dyn Write, json: bool, again: &str) -> Result<(), Failure> {
        if json {
            return write_json(out, &self.issued);
        }
        let IssuedKeyResponse { key: secret, data: key } = &self.issued;
        write_pairs(
            out,
            &[("Account", self.org), ("Key", &key.id), ("Name", &key.name), ("API key", &secret.key().expose())],
        )?;
        writeln!(out, "\nThe API key is shown only once; save it now. If it is lost, replace it with")?;
        Ok(writeln!(out, "  {again}")?)
    }
}
