//! An LLM API behind the gateway: LiteLLM as the upstream, called with OpenAI's clients for Python and TypeScript.

mod attacks;
mod configuration;
mod failures;
mod holds;
mod models;
mod passing;
mod scene;
mod sdks;
mod setup;
