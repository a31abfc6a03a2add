//! Webhooks, received by programs that verify with the official libraries of Standard Webhooks.

mod receivers;
