//! `MeteringLayer` around a small service: what is charged, refused, paid back and handed on.

mod delivery;
mod gate;
mod other_routes;
mod scene;
