//! The log of every posting, as C2SP `tlog-tiles` serves it. Its URL is in `/.well-known/metering-keys`.

use metering_core::wire::ErrorBody;

use crate::api::app::App;
use crate::endpoints::Request;
use crate::http::{Problem, Reply};

/// The checkpoint of the log
///
/// The signed head of the log of postings (C2SP `tlog-checkpoint`). It grows: do not cache it.
#[utoipa::path(get, path = "/log/{epoch}/checkpoint", operation_id = "log_checkpoint", tag = "descriptions",
    params(("epoch" = u32, Path, description = "The epoch of the log")),
    responses(
        (status = 200, description = "A signed note", content_type = "text/plain; charset=utf-8", body = String),
        (status = 404, description = "`not_found`: there is no such log, or nothing is published yet", body = ErrorBody),
        (status = 503, description = "`storage_unavailable`", body = ErrorBody),
    )
)]
pub(crate) async fn log_checkpoint(app: &App, request: Request) -> Result<Reply, Problem> {
    app.log.serve(request.segment(0), "checkpoint").await
}

/// A tile of the log, or a bundle of its entries
///
/// The path has slashes, as C2SP `tlog-tiles` says: `0/x001/234` for a tile of hashes, `entries/x001/234` for a bundle of
/// entries, with `.p/17` at the end for one that is not full. Full ones never change.
#[utoipa::path(get, path = "/log/{epoch}/tile/{path}", operation_id = "log_tile", tag = "descriptions",
    params(
        ("epoch" = u32, Path, description = "The epoch of the log"),
        ("path" = String, Path, description = "Level and index of the tile", example = "0/000"),
    ),
    responses(
        (status = 200, description = "Hashes or entries", content_type = "application/octet-stream"),
        (status = 404, description = "`not_found`: there is no such log, or it has not grown as far", body = ErrorBody),
        (status = 410, description = "`log_pruned`: these entries were deleted", body = ErrorBody),
        (status = 503, description = "`storage_unavailable`", body = ErrorBody),
    )
)]
pub(crate) async fn log_tile(app: &App, request: Request) -> Result<Reply, Problem> {
    app.log.serve(request.segment(0), &format!("tile/{}", request.segment(1))).await
}
