//! `MeteringLayer` around a small service: which requests it charges, refuses, refunds and passes on.

mod delivery;
mod gate;
mod models;
mod other_routes;
mod overlap;
mod precheck;
mod receipts;
mod scene;
mod shapes;
