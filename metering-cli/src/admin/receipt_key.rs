//! `metering admin receipt-key`: the file with the keys that sign receipts of requests. It needs no store.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use metering_config::server::read_key_ring;

use super::key_file::{self, generate, public_pem, unwritable};
use crate::failure::Failure;
use crate::new_file::NewFile;

/// Create or rotate the key that signs receipts of requests.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Example:
  metering admin receipt-key create /etc/metering/receipts.pem"
)]
pub(crate) struct ReceiptKeyArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(CreateArgs),
    Rotate(RotateArgs),
}

/// Create a file with a new key. A file that exists is not replaced.
#[derive(Debug, Args)]
#[command(after_help = "\
The file is readable by its owner only. If root runs the command, that is the owner of its folder. Name it in
receipts.key_file. Whoever has it can sign receipts in the name of the service.

Example:
  metering admin receipt-key create /etc/metering/receipts.pem")]
struct CreateArgs {
    /// The new file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Replace the key in a file with a new one, and keep its public key, so that earlier receipts stay verifiable.
#[derive(Debug, Args)]
#[command(after_help = "\
Reload each server afterwards; if they have copies of the file, replace those first. Owner, group and mode of the file
stay. For the key of the log, use `metering admin log rotate`: clients know that key, and need time to learn the new one.

Example:
  metering admin receipt-key rotate /etc/metering/receipts.pem")]
struct RotateArgs {
    /// The file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl ReceiptKeyArgs {
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::Create(args) => args.run(out),
            Command::Rotate(args) => args.run(out),
        }
    }
}

impl CreateArgs {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let file = self.file.display();
        if self.file.symlink_metadata().is_ok() {
            let advice = "`metering admin receipt-key rotate` adds a new key to it";
            return Err(Failure::Conflict(format!(
                "{file} exists, and receipts may be signed with its keys; {advice}"
            )));
        }
        let (kid, owner) = key_file::create(&self.file)?;
        let note = owner.note();
        Ok(writeln!(out, "Created {file} with key {kid}.{note} Set receipts.key_file to it, and reload the server.")?)
    }
}

impl RotateArgs {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        // Resolves links, so that the file itself is replaced.
        let cannot_read = |error: io::Error| Failure::Failed(format!("cannot read {}: {error}", self.file.display()));
        let file = fs::canonicalize(&self.file).map_err(cannot_read)?;
        let before = fs::metadata(&file).map_err(cannot_read)?;
        let published = read_key_ring(&file).map_err(Failure::Failed)?.published();
        let earlier = public_pem(&published)?;
        let key = generate();
        let pem = key.to_pem().map_err(unwritable)?;
        let mut new = NewFile::next_to(&file, true)?;
        let written = new.write_all(earlier.as_bytes()).and_then(|()| new.write_all(pem.as_bytes()));
        // The server must be able to read it.
        let kept = written.and_then(|()| new.keep_access(&before));
        kept.map_err(|error| new.cannot_write(&error))?;
        new.finish()?;
        let (kid, count) = (key.public(), published.iter().count());
        let keys = if count == 1 { "earlier key stays" } else { "earlier keys stay" };
        Ok(writeln!(out, "Key {kid} signs once the servers have reloaded the file; {count} {keys} published.")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotated_file_signs_with_a_new_key_and_publishes_the_earlier_ones() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("receipts.pem");
        let (mut out, mut signed) = (Vec::new(), Vec::new());
        let ring = || read_key_ring(&file).unwrap();
        CreateArgs { file: file.clone() }.run(&mut out).unwrap();
        signed.push(ring().signing().public());
        #[cfg(unix)]
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
        for _ in 0..2 {
            RotateArgs { file: file.clone() }.run(&mut out).unwrap();
            signed.push(ring().signing().public());
        }
        assert_eq!(ring().published().iter().map(|(_, key)| key).collect::<Vec<_>>(), signed);
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.matches("PRIVATE KEY").count(), 2, "earlier private keys are gone");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        }
        assert!(!String::from_utf8(out).unwrap().contains(text.lines().nth_back(1).unwrap()), "no key is printed");
    }

    #[test]
    fn no_file_is_overwritten_or_rotated_unread() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("receipts.pem");
        fs::write(&file, "precious").unwrap();
        #[cfg(unix)]
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        assert!(matches!(CreateArgs { file: file.clone() }.run(&mut Vec::new()), Err(Failure::Conflict(_))));
        assert!(matches!(RotateArgs { file: file.clone() }.run(&mut Vec::new()), Err(Failure::Failed(_))));
        assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
        assert!(RotateArgs { file: folder.path().join("missing.pem") }.run(&mut Vec::new()).is_err());
    }
}
