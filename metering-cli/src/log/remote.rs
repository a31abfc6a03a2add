//! A log over HTTP: its checkpoint, tiles and entries (C2SP `tlog-tiles`).

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::Read;
use std::time::Duration;

use bytes::Bytes;
use flate2::read::GzDecoder;
use futures_util::StreamExt;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use metering_client::{HttpTransport, ServiceUrl, Transport};
use metering_log::tree::{LogPath, MAX_ENTRY_BYTES, TILE_WIDTH, Tile, TreeHash, read_entries, read_tile};

use crate::failure::Failure;

/// For connecting, and while nothing arrives.
const TIMEOUT: Duration = Duration::from_secs(30);
/// For a whole resource, however slowly it arrives.
const DEADLINE: Duration = Duration::from_secs(300);

/// A checkpoint with many witnesses is some kilobytes long.
const MAX_CHECKPOINT_BYTES: usize = 1 << 20;
const MAX_TILE_BYTES: usize = TILE_WIDTH as usize * 32;
const MAX_BUNDLE_BYTES: usize = TILE_WIDTH as usize * (MAX_ENTRY_BYTES + 2);

/// A log that is read over HTTP.
#[derive(Debug)]
pub(crate) struct RemoteLog {
    url: ServiceUrl,
    transport: HttpTransport,
}

impl RemoteLog {
    pub(crate) fn open(url: ServiceUrl) -> Result<Self, Failure> {
        let transport = HttpTransport::new(url.clone(), TIMEOUT);
        Ok(Self { transport: transport.map_err(|error| Failure::Failed(error.to_string()))?, url })
    }

    /// The text of the checkpoint.
    pub(crate) async fn checkpoint(&self) -> Result<String, Failure> {
        let Some(body) = self.get(LogPath::Checkpoint, MAX_CHECKPOINT_BYTES).await? else {
            return Err(Failure::NotFound(format!("{} serves no checkpoint; give the URL of a log", self.url)));
        };
        String::from_utf8(body).map_err(|_| self.wrong(LogPath::Checkpoint, &"it is not UTF-8"))
    }

    /// The hashes of a tile, which the log's tree must have.
    pub(crate) async fn tile(&self, tile: Tile) -> Result<Vec<TreeHash>, Failure> {
        let (found, body) = self.full_or_partial(tile, LogPath::Tile, MAX_TILE_BYTES).await?;
        let hashes = read_tile(&body, found.width()).map_err(|error| self.wrong(LogPath::Tile(found), &error))?;
        Ok(hashes.into_iter().take(tile.width().into()).collect())
    }

    /// The hashes of the entries of a tile of level 0.
    pub(crate) async fn entries(&self, tile: Tile) -> Result<Vec<TreeHash>, Failure> {
        let (found, body) = self.full_or_partial(tile, LogPath::Entries, MAX_BUNDLE_BYTES).await?;
        let entries =
            read_entries(&body, found.width()).map_err(|error| self.wrong(LogPath::Entries(found), &error))?;
        Ok(entries.into_iter().take(tile.width().into()).map(TreeHash::leaf).collect())
    }

    /// A partial tile may no longer be served once the full one exists.
    async fn full_or_partial(
        &self,
        tile: Tile,
        path: fn(Tile) -> LogPath,
        limit: usize,
    ) -> Result<(Tile, Vec<u8>), Failure> {
        for tile in BTreeSet::from([tile, tile.full()]) {
            if let Some(body) = self.get(path(tile), limit).await? {
                return Ok((tile, body));
            }
        }
        Err(Failure::NotFound(format!("{} does not serve {}: the log may be pruned", self.url, path(tile))))
    }

    /// A resource of the log; `None` if the log does not have it.
    async fn get(&self, path: LogPath, limit: usize) -> Result<Option<Vec<u8>>, Failure> {
        let late = |_| Failure::TryLater(format!("{}/{path} took over {} s", self.url, DEADLINE.as_secs()));
        tokio::time::timeout(DEADLINE, self.fetch(path, limit)).await.map_err(late)?
    }

    async fn fetch(&self, path: LogPath, limit: usize) -> Result<Option<Vec<u8>>, Failure> {
        let request = http::Request::get(format!("/{path}")).header(ACCEPT_ENCODING, "gzip, identity");
        let request = request.body(Bytes::new()).map_err(|error| Failure::Failed(error.to_string()))?;
        let unreachable = |error: &dyn Display| Failure::TryLater(format!("cannot read {}/{path}: {error}", self.url));
        let response = self.transport.send(request).await.map_err(|error| unreachable(&error))?;
        match response.status().as_u16() {
            200 => {}
            404 | 410 => return Ok(None),
            // Redirects are not followed: the caller trusts this address, which came through another channel.
            301 | 302 | 303 | 307 | 308 => {
                return Err(Failure::Failed(format!("{}/{path} redirects; give the URL that it leads to", self.url)));
            }
            status => return Err(unreachable(&format!("status {status}"))),
        }
        let is_gzip = response.headers().get(CONTENT_ENCODING).is_some_and(|encoding| encoding == "gzip");
        let mut pieces = response.into_body();
        let mut body = Vec::new();
        while let Some(piece) = pieces.next().await {
            body.extend_from_slice(&piece.map_err(|error| unreachable(&error))?);
            if body.len() > limit {
                return Err(self.wrong(path, &"it is too long"));
            }
        }
        if is_gzip {
            let mut plain = Vec::new();
            let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
            let unpacked = GzDecoder::new(body.as_slice()).take(most).read_to_end(&mut plain);
            unpacked.map_err(|error| self.wrong(path, &error))?;
            body = plain;
        }
        if body.len() > limit { Err(self.wrong(path, &"it is too long")) } else { Ok(Some(body)) }
    }

    /// The log served something invalid.
    fn wrong(&self, path: LogPath, problem: &dyn Display) -> Failure {
        Failure::Discrepancies(format!("{}/{path} is not a valid part of a log: {problem}", self.url))
    }
}
