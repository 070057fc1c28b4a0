//! Limits of size, time and number for clients.

use crate::clients::AddressRange;
use std::time::Duration;

/// The limits of a request. The defaults are those of `regard serve`.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a body, files included.
    pub body_bytes: usize,
    /// Characters of all texts of a request together.
    pub characters: usize,
    /// Texts of a request.
    pub texts: usize,
    /// Alternatives of a text.
    pub alternatives: usize,
    /// Tokens on either side of what attention is shown for.
    pub attention_tokens: usize,
    /// How long a request may take, reading it and translating it each.
    pub timeout: Duration,
    /// How long a client may take to send the head of a request, and how long a connection may do
    /// nothing.
    pub idle: Duration,
    /// How long a body may bring less than [`Limits::BODY_PROGRESS`] bytes.
    pub stall: Duration,
    /// Connections at a time. A further one takes the place of one that waits for a request, or
    /// else is refused.
    pub connections: usize,
    /// Connections at a time of one client address; further ones are refused.
    pub connections_per_address: usize,
    /// Requests per minute of a client, if there is a limit.
    pub requests_per_minute: Option<u32>,
    /// Wrong keys per minute of a client address.
    pub wrong_keys_per_minute: u32,
    /// Proxies whose word about the address of their clients is taken.
    pub trusted_proxies: Vec<AddressRange>,
}

impl Limits {
    /// Bytes that a body must bring within [`Limits::stall`] until it is complete.
    pub const BODY_PROGRESS: usize = 4096;

    /// A longer wait is as good as none, and cannot overflow a clock.
    pub(crate) const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

    /// The limits with waits that clocks can be set to.
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
