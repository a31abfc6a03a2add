//! Counts what is written.

use std::io::{self, Write};

/// A writer that counts its bytes.
pub(crate) struct Counted<'o> {
    out: &'o mut dyn Write,
    pub(crate) bytes: u64,
}

impl<'o> Counted<'o> {
    pub(crate) fn new(out: &'o mut dyn Write) -> Self {
        Self { out, bytes: 0 }
    }
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes = self.bytes.saturating_add(u64::try_from(written).unwrap_or(u64::MAX));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
