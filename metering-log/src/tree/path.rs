//! The paths that a log serves (`tlog-tiles`), below its URL prefix.

use std::fmt;
use std::str::FromStr;

use crate::decimal;
use crate::tree::tile::{TILE_WIDTH, Tile};

/// A path below a log's URL prefix, without a slash in front.
///
/// ```
/// use metering_log::tree::{LogPath, Tile};
///
/// let path = LogPath::Tile(Tile::new(1, 1_234_067, 8).unwrap());
/// assert_eq!(path.to_string(), "tile/1/x001/x234/067.p/8");
/// assert_eq!("tile/1/x001/x234/067.p/8".parse(), Ok(path));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogPath {
    /// `checkpoint`: the signed head of the tree, as `text/plain; charset=utf-8`; it changes.
    Checkpoint,
    /// `tile/<L>/<N>[.p/<W>]`: hashes, as `application/octet-stream`; never changes.
    Tile(Tile),
    /// `tile/entries/<N>[.p/<W>]`: the entries of a tile of level 0, as `application/octet-stream`; never changes.
    Entries(Tile),
}

impl LogPath {
    /// The path of the entries whose hashes are in this tile of level 0; `None` for the levels above.
    #[must_use]
    pub fn entries(tile: Tile) -> Option<Self> {
        (tile.level() == 0).then_some(Self::Entries(tile))
    }
}

/// Not a path that a log serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the path of a checkpoint, a tile or a bundle of entries")]
pub struct MalformedPath;

impl fmt::Display for LogPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tile = match self {
            Self::Checkpoint => return f.write_str("checkpoint"),
            Self::Tile(tile) => {
                write!(f, "tile/{}/", tile.level())?;
                tile
            }
            Self::Entries(tile) => {
                f.write_str("tile/entries/")?;
                tile
            }
        };
        // Groups of three digits, each but the last with an x.
        let digits = tile.index().to_string();
        let padded = format!("{digits:0>width$}", width = digits.len().div_ceil(3) * 3);
        for (place, digit) in padded.chars().enumerate() {
            if place % 3 == 0 && place > 0 {
                f.write_str("/")?;
            }
            if place % 3 == 0 && place + 3 < padded.len() {
                f.write_str("x")?;
            }
            write!(f, "{digit}")?;
        }
        if tile.is_full() { Ok(()) } else { write!(f, ".p/{}", tile.width()) }
    }
}

impl FromStr for LogPath {
    type Err = MalformedPath;

    fn from_str(path: &str) -> Result<Self, MalformedPath> {
        // Comparing with the canonical form makes every other spelling an error.
        read(path).filter(|read| read.to_string() == path).ok_or(MalformedPath)
    }
}

fn read(path: &str) -> Option<LogPath> {
    if path == "checkpoint" {
        return Some(LogPath::Checkpoint);
    }
    let (level, place) = path.strip_prefix("tile/")?.split_once('/')?;
    let (index, width) = match place.split_once(".p/") {
        Some((index, width)) => (index, u16::try_from(decimal::parse(width)?).ok()?),
        None => (place, TILE_WIDTH),
    };
    let digits: String = index.chars().filter(char::is_ascii_digit).collect();
    let index = digits.parse().ok()?;
    if level == "entries" {
        return Tile::new(0, index, width).map(LogPath::Entries);
    }
    Tile::new(u8::try_from(decimal::parse(level)?).ok()?, index, width).map(LogPath::Tile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_text() {
        let tile = |level, index, width| Tile::new(level, index, width).unwrap();
        for (path, expected) in [
            (LogPath::Checkpoint, "checkpoint"),
            (LogPath::Tile(tile(0, 0, 256)), "tile/0/000"),
            (LogPath::Tile(tile(0, 1_234_067, 256)), "tile/0/x001/x234/067"),
            (LogPath::Tile(tile(63, 999, 1)), "tile/63/999.p/1"),
            (LogPath::Tile(tile(2, 1000, 255)), "tile/2/x001/000.p/255"),
            (LogPath::Tile(tile(1, u64::MAX, 256)), "tile/1/x018/x446/x744/x073/x709/x551/615"),
            (LogPath::Entries(tile(0, 273, 112)), "tile/entries/273.p/112"),
        ] {
            assert_eq!(path.to_string(), expected);
            assert_eq!(expected.parse(), Ok(path));
        }
    }

    #[test]
    fn other_paths_are_refused() {
        for path in [
            "",
            "/checkpoint",
            "checkpoint/",
            "tile",
            "tile/",
            "tile/0",
            "tile/0/",
            "tile/0/0",
            "tile/0/0000",
            "tile/00/000",
            "tile/64/000",
            "tile/-1/000",
            "tile/0/x000/000",
            "tile/0/001/000",
            "tile/0/x001",
            "tile/0/x001/x000",
            "tile/0/000/",
            "tile/0/000.p",
            "tile/0/000.p/",
            "tile/0/000.p/0",
            "tile/0/000.p/01",
            "tile/0/000.p/256",
            "tile/0/000.p/+1",
            "tile/0/000.p/1/",
            "tile/0/000.p/1.p/1",
            "tile/0/x018/x446/x744/x073/x709/x551/616",
            "tile/0/00a",
            "tile/0/../000",
            "tile/entries/0",
            "tile/data/000",
            "tile//000",
            "tile/0/٠٠٠",
            "tile/0/000?",
            "tile/0/xx01/000",
        ] {
            assert_eq!(path.parse::<LogPath>(), Err(MalformedPath), "{path:?}");
        }
    }
}
