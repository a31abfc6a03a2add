//! Moves whole stores: reads one as records, page by page, and writes these to another.

mod export;
mod import;
mod section;
mod source;

pub use export::page;
pub use import::write;
pub use section::tables;
pub use source::Source;
