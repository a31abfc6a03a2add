//! Serves the log below `/log/EPOCH/` as C2SP `tlog-tiles`: its checkpoint, tiles, and bundles of entries.

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use metering_core::Error;
use metering_core::store::LogEpoch;
use metering_core::wire::ErrorCode;
use metering_log::tree::{LogPath, tile_bytes};
use metering_proof::LogReadError;

use super::posting_log::PostingLog;
use crate::http::{Problem, Reply, bytes, with_headers};

impl PostingLog {
    /// The response for a path of an epoch.
    ///
    /// # Errors
    /// 404 if the published log does not have the resource, 410 if it was deleted.
    pub(crate) async fn serve(&self, epoch: &str, path: &str) -> Result<Reply, Problem> {
        let number = epoch.parse::<u32>().ok().filter(|number| number.to_string() == epoch);
        let number = number.filter(|_| self.is_public).ok_or_else(no_log)?;
        let path = path.parse::<LogPath>().map_err(|_| Problem::not_found())?;
        let _read = self.reads.acquire().await.map_err(|_| Problem::internal())?;
        let epochs = self.store.log_epochs().await.map_err(Error::from)?;
        let epoch = epochs.into_iter().find(|epoch| epoch.number == number).ok_or_else(no_log)?;
        let note = published(&epoch, path)?;
        let content = match path {
            LogPath::Checkpoint => Some(Bytes::copy_from_slice(note.as_bytes())),
            LogPath::Tile(tile) => {
                let hashes = self.reader.tile(&epoch, tile).await.map_err(failed)?;
                hashes.map(|hashes| tile_bytes(&hashes).into())
            }
            LogPath::Entries(tile) => self.reader.entries(&epoch, tile).await.map_err(failed)?.map(Bytes::from),
        };
        // The log had them when its epoch was read.
        Ok(reply(path, content.ok_or_else(pruned)?))
    }
}

/// Checks that the published log has the resource at the path, and returns its checkpoint.
fn published(epoch: &LogEpoch, path: LogPath) -> Result<&str, Problem> {
    let none = || Problem::new(ErrorCode::NotFound, "This log has no checkpoint yet; try again in a few seconds.");
    let (size, note) = epoch.checkpoint.as_ref().ok_or_else(none)?;
    let (tile, is_made_from_leaves) = match path {
        LogPath::Checkpoint => return Ok(note),
        LogPath::Tile(tile) => (tile, tile.level() == 0),
        LogPath::Entries(tile) => (tile, true),
    };
    if !tile.is_in(*size) {
        let message = format!("The published log has {size} entries, so it does not have {path}.");
        return Err(Problem::new(ErrorCode::NotFound, message));
    }
    if is_made_from_leaves && tile.index() < epoch.minimum {
        return Err(pruned());
    }
    Ok(note)
}

fn reply(path: LogPath, content: Bytes) -> Reply {
    let (media, caching) = match path {
        LogPath::Checkpoint => ("text/plain; charset=utf-8", "no-cache"),
        LogPath::Tile(tile) | LogPath::Entries(tile) if tile.is_full() => {
            ("application/octet-stream", "public, max-age=31536000, immutable")
        }
        // No client requests it once there is a wider one.
        LogPath::Tile(_) | LogPath::Entries(_) => ("application/octet-stream", "public, max-age=3600"),
    };
    let reply = bytes(StatusCode::OK, HeaderValue::from_static(media), content);
    with_headers(reply, vec![("cache-control", caching.to_owned())])
}

fn no_log() -> Problem {
    Problem::new(ErrorCode::NotFound, "This service has no such log; see /.well-known/metering-keys.")
}

fn pruned() -> Problem {
    Problem::new(
        ErrorCode::LogPruned,
        "These entries of the log were deleted. Later ones, and proofs for them, are still there.",
    )
}

fn failed(error: LogReadError) -> Error {
    match error {
        LogReadError::Store(error) => error.into(),
        damaged => {
            tracing::error!(error = %damaged, "the log cannot be read");
            Error::Internal
        }
    }
}

#[cfg(test)]
mod tests {
    use http::header::{CACHE_CONTROL, CONTENT_TYPE};

    use super::super::test_epoch::epoch;
    use super::*;

    #[test]
    fn what_the_published_log_has_is_served() {
        // 600 leaves: bundles 0 (pruned), 1, and 88 leaves of bundle 2.
        let epoch = LogEpoch { size: 700, ..epoch(600, [0; 32]) };
        // path, status
        let table = [
            ("checkpoint", 200),
            ("tile/1/000.p/2", 200),
            ("tile/1/000.p/1", 200),
            ("tile/1/000.p/3", 404),
            ("tile/1/000", 404),
            ("tile/2/000.p/1", 404),
            ("tile/0/000", 410),
            ("tile/0/000.p/3", 410),
            ("tile/0/001", 200),
            ("tile/0/002.p/88", 200),
            ("tile/0/002.p/1", 200),
            ("tile/0/002.p/89", 404),
            ("tile/0/003.p/1", 404),
            ("tile/entries/000", 410),
            ("tile/entries/001", 200),
            ("tile/entries/002", 404),
            ("tile/entries/x001/000", 404),
        ];
        for (path, expected) in table {
            let served = published(&epoch, path.parse().unwrap());
            assert_eq!(served.map_or_else(|problem| problem.status().as_u16(), |_| 200), expected, "{path}");
        }
        let unpublished = LogEpoch { checkpoint: None, ..epoch };
        assert_eq!(published(&unpublished, LogPath::Checkpoint).unwrap_err().status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn full_tiles_are_cached_for_ever_and_checkpoints_not() {
        // path, media type, caching
        let table = [
            ("checkpoint", "text/plain; charset=utf-8", "no-cache"),
            ("tile/0/001", "application/octet-stream", "public, max-age=31536000, immutable"),
            ("tile/entries/001", "application/octet-stream", "public, max-age=31536000, immutable"),
            ("tile/entries/001.p/9", "application/octet-stream", "public, max-age=3600"),
        ];
        for (path, media, caching) in table {
            let reply = reply(path.parse().unwrap(), Bytes::from_static(b"x"));
            assert_eq!(reply.headers()[CONTENT_TYPE], media, "{path}");
            assert_eq!(reply.headers()[CACHE_CONTROL], caching, "{path}");
        }
    }
}
