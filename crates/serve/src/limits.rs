//! Limits on the size, duration and number of requests and connections.

use crate::clients::AddressRange;
use std::time::Duration;

/// The limits for clients. The defaults are those of `regard serve`.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The maximum size of a body in bytes, including files.
    pub body_bytes: usize,
    /// The maximum number of characters in all texts of a request together.
    pub characters: usize,
    /// The maximum number of texts per request.
    pub texts: usize,
    /// The maximum number of alternatives per text.
    pub alternatives: usize,
    /// The maximum number of tokens on each side for which attention is returned.
    pub attention_tokens: usize,
    /// The timeout for reading a request, and separately for translating it.
    pub timeout: Duration,
    /// The timeout for receiving the head of a request, and for an idle connection.
    pub idle: Duration,
    /// The time within which a body must deliver [`Limits::BODY_PROGRESS`] bytes.
    pub stall: Duration,
    /// The maximum number of connections. A further one replaces an idle connection, or is
    /// rejected.
    pub connections: usize,
    /// The maximum number of connections from one client address; further ones are rejected.
    pub connections_per_address: usize,
    /// The maximum number of requests per minute and client, if limited.
    pub requests_per_minute: Option<u32>,
    /// The maximum number of wrong keys per minute and client address.
    pub wrong_keys_per_minute: u32,
    /// Proxies that are trusted to report the addresses of their clients.
    pub trusted_proxies: Vec<AddressRange>,
}

impl Limits {
    /// The number of bytes that a body must deliver within [`Limits::stall`] until it is complete.
    pub const BODY_PROGRESS: usize = 4096;

    /// Caps timeouts: a longer one is effectively none, and could overflow a clock.
    pub(crate) const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

    /// The limits with capped timeouts.
    pub(crate) fn capped(mut self) -> Self {
        for wait in [&mut self.timeout, &mut self.idle, &mut self.stall] {
            *wait = (*wait).min(Self::LONGEST);
        }
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body_bytes: 4 << 20,
            characters: 100_000,
            texts: 1_000,
            alternatives: 5,
            attention_tokens: 100,
            timeout: Duration::from_secs(60),
            idle: Duration::from_secs(30),
            stall: Duration::from_secs(5),
            connections: 1_000,
            connections_per_address: 100,
            requests_per_minute: None,
            wrong_keys_per_minute: 10,
            trusted_proxies: Vec::new(),
        }
    }
}
