//! Where a response's body goes: to standard output as it arrives, or into a file that appears when it is complete.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use futures_util::StreamExt;
use metering_client::{BodyStream, ClientError, Unreachable};

use crate::failure::Failure;
use crate::new_file::NewFile;

/// The destination of a body.
pub(super) enum Destination<'o> {
    /// A file being written.
    File(NewFile),
    /// Standard output to a program: every byte unchanged.
    Pipe(&'o mut dyn Write),
    /// Standard output to a terminal.
    Terminal(Screen<'o>),
}

impl<'o> Destination<'o> {
    /// Opens the file, if one is named.
    pub(super) fn open(file: Option<&Path>, replace: bool, out: &'o mut dyn Write) -> Result<Self, Failure> {
        if let Some(path) = file {
            return Ok(Self::File(NewFile::next_to(path, replace)?));
        }
        let terminal = io::stdout().is_terminal();
        Ok(if terminal { Self::Terminal(Screen { out, last: b'\n' }) } else { Self::Pipe(out) })
    }

    /// Whether it is a file.
    pub(super) const fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// Writes the body, chunk by chunk.
    pub(super) async fn receive(&mut self, mut body: BodyStream) -> Result<(), Failure> {
        let mut bytes = 0;
        while let Some(chunk) = body.next().await {
            let chunk = chunk.map_err(|Unreachable(why)| {
                let what = format!("the response was cut off after {bytes} bytes: {why}");
                Failure::from(ClientError::from(Unreachable(what)))
            })?;
            bytes += chunk.len();
            self.write(&chunk)?;
        }
        Ok(())
    }

    fn write(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        match self {
            Self::File(file) => file.write_all(chunk).map_err(|error| file.cannot_write(&error)),
            // Flush, because the reader may be waiting for exactly these bytes.
            Self::Pipe(out) => Ok(out.write_all(chunk).and_then(|()| out.flush())?),
            Self::Terminal(screen) => Ok(screen.write(chunk)?),
        }
    }

    /// Ends the current line on a terminal, before another message is printed.
    pub(super) fn end_line(&mut self) -> Result<(), Failure> {
        match self {
            Self::File(_) | Self::Pipe(_) => Ok(()),
            Self::Terminal(screen) => Ok(screen.end_line()?),
        }
    }

    /// Gives the file its name.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self {
            Self::File(file) => file.finish(),
            Self::Pipe(_) | Self::Terminal(_) => Ok(()),
        }
    }
}

/// A terminal. Control characters in the response must not reach it.
pub(super) struct Screen<'o> {
    out: &'o mut dyn Write,
    last: u8,
}

impl Screen<'_> {
    fn write(&mut self, chunk: &[u8]) -> io::Result<()> {
        let shown: Vec<u8> = chunk
            .iter()
            .map(|&byte| {
                let shown = shown(self.last, byte);
                self.last = byte;
                shown
            })
            .collect();
        self.out.write_all(&shown)?;
        self.out.flush()
    }

    fn end_line(&mut self) -> io::Result<()> {
        if self.last != b'\n' {
            self.last = b'\n';
            writeln!(self.out)?;
        }
        self.out.flush()
    }
}

/// The byte to show for `byte` after `previous`: itself, or a harmless one instead of a control character.
fn shown(previous: u8, byte: u8) -> u8 {
    match byte {
        b'\n' | b'\t' => byte,
        0..=0x1f | 0x7f => b'?',
        // U+0080 to U+009F, which are control characters too, become U+00BF.
        0x80..=0x9f if previous == 0xc2 => 0xbf,
        _ => byte,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_across_chunks() {
        let text = "{\"a\":\"\u{1b}[2J\u{9b}31m\u{7f}é\t\"}\r\n".as_bytes();
        for cut in 0..text.len() {
            let mut out = Vec::new();
            let mut screen = Screen { out: &mut out, last: b'\n' };
            screen.write(&text[..cut]).unwrap();
            screen.write(&text[cut..]).unwrap();
            screen.end_line().unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), "{\"a\":\"?[2J¿31m?é\t\"}?\n");
        }
    }

    #[test]
    fn the_line_is_ended_for_the_prompt() {
        let mut out = Vec::new();
        let mut screen = Screen { out: &mut out, last: b'\n' };
        screen.write(b"{}").unwrap();
        screen.end_line().unwrap();
        assert_eq!(out, b"{}\n");
    }
}
