//! HTTP itself: malformed requests, floods, CORS, and responses of the server's own.

mod bodies;
mod cors;
mod floods;
mod malformed;
mod own_responses;
mod tls;
