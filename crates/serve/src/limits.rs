//! What a client may ask for: sizes, times, requests a minute, keys.

use crate::error::{ApiError, ApiResult};
use axum::http::StatusCode;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

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
    /// How long a client may take to send the head of a request, and how long a connection may do nothing.
    pub idle: Duration,
    /// Connections at a time; more wait until one ends.
    pub connections: usize,
    /// Requests a minute of a client, if there is a limit.
    pub requests_per_minute: Option<u32>,
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
            connections: 1_000,
            requests_per_minute: None,
        }
    }
}

/// How many bodies of the largest size are held at once; smaller ones can be more.
const BODIES: usize = 16;

/// The bodies of all requests that are under way.
#[derive(Debug)]
pub(crate) struct Bodies {
    bytes: AtomicUsize,
    most: usize,
}

impl Bodies {
    pub(crate) fn new(limits: &Limits) -> Self {
        Bodies { bytes: AtomicUsize::new(0), most: limits.body_bytes.saturating_mul(BODIES) }
    }
}

/// Bytes that are held until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    bodies: Arc<Bodies>,
    bytes: usize,
}

impl Held {
    pub(crate) fn new(bodies: &Arc<Bodies>) -> Self {
        Held { bodies: Arc::clone(bodies), bytes: 0 }
    }

    /// Some more, if there is room for them.
    pub(crate) fn add(&mut self, bytes: usize) -> ApiResult<()> {
        self.bytes += bytes;
        let all = self.bodies.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if all > self.bodies.most {
            return Err(ApiError::busy("too many large requests at once, try again"));
        }
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.bodies.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Keys that clients must show.
#[derive(Clone, Debug, Default)]
pub struct Keys(HashSet<String>);

impl Keys {
    /// Reads a file with one key a line; empty lines and lines that begin with `#` are left out.
    pub fn load(path: &Path) -> regard_core::Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| regard_core::Error::io(path, e))?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys: HashSet<String> = lines.map(str::to_owned).collect();
        if keys.is_empty() {
            return Err(regard_core::Error::file(path, "there is no key in it; one a line is expected"));
        }
        Ok(Keys(keys))
    }
}

/// Who is let in.
#[derive(Debug)]
pub(crate) struct Gate {
    keys: Option<Keys>,
    per_minute: Option<u32>,
    windows: Mutex<HashMap<Client, Window>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Client {
    Key(String),
    Address(Option<IpAddr>),
}

/// The requests of a client since a moment.
#[derive(Clone, Copy, Debug)]
struct Window {
    since: Instant,
    requests: u32,
}

const MINUTE: Duration = Duration::from_secs(60);

/// Clients that are remembered at most.
const CLIENTS: usize = 50_000;

impl Gate {
    pub(crate) fn new(keys: Option<Keys>, per_minute: Option<u32>) -> Self {
        Gate { keys, per_minute, windows: Mutex::default() }
    }

    /// Whether clients must show a key.
    pub(crate) fn needs_key(&self) -> bool {
        self.keys.is_some()
    }

    /// Counts a request, or refuses it.
    pub(crate) fn admit(&self, key: Option<&str>, address: Option<IpAddr>) -> ApiResult<()> {
        let client = match (&self.keys, key) {
            (None, _) => Client::Address(address),
            (Some(_), None) => {
                return Err(ApiError::bad("Please contact the server operator to get an API key"));
            }
            (Some(keys), Some(key)) if keys.0.contains(key) => Client::Key(key.to_owned()),
            (Some(_), Some(_)) => return Err(ApiError::new(StatusCode::FORBIDDEN, "Invalid API key")),
        };
        self.count(client, Instant::now())
    }

    fn count(&self, client: Client, now: Instant) -> ApiResult<()> {
        let Some(limit) = self.per_minute else { return Ok(()) };
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= CLIENTS && !windows.contains_key(&client) {
            windows.retain(|_, window| now.duration_since(window.since) < MINUTE);
            if windows.len() >= CLIENTS {
                windows.clear();
            }
        }
        let window = windows.entry(client).or_insert(Window { since: now, requests: 0 });
        let passed = now.duration_since(window.since);
        if passed >= MINUTE {
            *window = Window { since: now, requests: 0 };
        } else if window.requests >= limit {
            let message = format!("Slowdown: {limit} per 1 minute");
            return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, message).after(MINUTE - passed));
        }
        window.requests += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(n: u8) -> Client {
        Client::Address(Some(IpAddr::from([127, 0, 0, n])))
    }

    #[test]
    fn a_client_has_so_many_requests_a_minute() {
        let gate = Gate::new(None, Some(2));
        let start = Instant::now();
        assert!(gate.count(client(1), start).is_ok() && gate.count(client(1), start).is_ok());
        let refused = gate.count(client(1), start + Duration::from_secs(20)).unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.message.as_str()), (429, "Slowdown: 2 per 1 minute"));
        assert_eq!(refused.retry_after, Some(Duration::from_secs(40)));
        assert!(gate.count(client(2), start).is_ok(), "another client has its own");
        assert!(gate.count(client(1), start + MINUTE).is_ok(), "a new minute");
    }

    #[test]
    fn clients_are_not_remembered_without_end() {
        let gate = Gate::new(None, Some(1));
        let now = Instant::now();
        for n in 0..CLIENTS as u32 + 10 {
            gate.count(Client::Address(Some(IpAddr::from(n.to_be_bytes()))), now).unwrap();
        }
        assert!(gate.windows.lock().unwrap().len() <= CLIENTS);
    }

    #[test]
    fn bodies_share_what_there_is() {
        let bodies = Arc::new(Bodies::new(&Limits { body_bytes: 10, ..Limits::default() }));
        let (mut first, mut second) = (Held::new(&bodies), Held::new(&bodies));
        assert!(first.add(100).is_ok() && second.add(60).is_ok());
        let refused = second.add(1).unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.retry_after), (503, Some(Duration::from_secs(1))));
        drop(second);
        assert!(first.add(60).is_ok());
        drop(first);
        assert_eq!(bodies.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn keys_are_read_and_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        std::fs::write(&file, "# ours\n\n secret \n").unwrap();
        let gate = Gate::new(Some(Keys::load(&file).unwrap()), None);
        assert!(gate.admit(Some("secret"), None).is_ok());
        assert_eq!(gate.admit(Some("other"), None).unwrap_err().status, StatusCode::FORBIDDEN);
        assert_eq!(gate.admit(None, None).unwrap_err().status, StatusCode::BAD_REQUEST);
        std::fs::write(&file, "# none\n").unwrap();
        let error = Keys::load(&file).unwrap_err().to_string();
        assert!(error.ends_with("there is no key in it; one a line is expected"), "{error}");
    }
}
