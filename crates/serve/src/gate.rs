//! API keys and request quotas.

use crate::clients::ClientAddress;
use crate::error::{ApiError, ApiResult};
use crate::keys::{KeyHash, KeyLimits, Keys};
use crate::limits::Limits;
use axum::http::StatusCode;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A client whose requests share a quota.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Client {
    Key(KeyHash),
    Address(ClientAddress),
}

/// Admission control for requests.
#[derive(Debug)]
pub(crate) struct Gate {
    keys: Option<Keys>,
    per_minute: Option<u32>,
    wrong_per_minute: u32,
    requests: Mutex<Recent<Client, Window>>,
    wrong_keys: Mutex<Recent<ClientAddress, Window>>,
    /// The addresses at which each key was valid: there it is accepted even after wrong keys by
    /// another client at the same address.
    known: Mutex<Recent<(ClientAddress, KeyHash), ()>>,
}

const MINUTE: Duration = Duration::from_secs(60);

/// The maximum number of clients to remember.
const CLIENTS: usize = 50_000;

impl Gate {
    pub(crate) fn new(keys: Option<Keys>, limits: &Limits) -> Self {
        Gate {
            keys,
            per_minute: limits.requests_per_minute,
            wrong_per_minute: limits.wrong_keys_per_minute,
            requests: Mutex::new(Recent::new(CLIENTS)),
            wrong_keys: Mutex::new(Recent::new(CLIENTS)),
            known: Mutex::new(Recent::new(CLIENTS)),
        }
    }

    /// Whether clients need a key.
    pub(crate) fn needs_key(&self) -> bool {
        self.keys.is_some()
    }

    /// Counts a request, or rejects it. Returns the limits of its key, if they differ from those of
    /// the server.
    pub(crate) fn admit(&self, key: Option<&KeyHash>, address: ClientAddress) -> ApiResult<KeyLimits> {
        self.admit_at(key, address, Instant::now())
    }

    fn admit_at(&self, key: Option<&KeyHash>, address: ClientAddress, now: Instant) -> ApiResult<KeyLimits> {
        let (client, limits) = match (&self.keys, key) {
            (None, _) => (Client::Address(address), KeyLimits::default()),
            (Some(_), None) => return Err(no_key()),
            (Some(keys), Some(key)) => (Client::Key(*key), self.check(keys, key, address, now)?),
        };
        let Some(limit) = limits.requests_per_minute.or(self.per_minute) else { return Ok(limits) };
        let mut requests = lock(&self.requests);
        let window = requests.entry(client, || Window { since: now, count: 0 });
        if let Some(wait) = window.add(limit, now) {
            let message = format!("Slowdown: {limit} per 1 minute");
            return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, message).after(wait));
        }
        Ok(limits)
    }

    /// The limits of a key, if it is valid. An address that has sent too many wrong keys cannot try
    /// others for a while, so that a correct guess is indistinguishable from a wrong one. Clients
    /// at the same address whose key was valid before are not affected.
    fn check(
        &self,
        keys: &Keys,
        key: &KeyHash,
        address: ClientAddress,
        now: Instant,
    ) -> ApiResult<KeyLimits> {
        let pair = (address, *key);
        let blocked = lock(&self.wrong_keys).get(&address).and_then(|w| w.full(self.wrong_per_minute, now));
        if let Some(wait) = blocked
            && lock(&self.known).get(&pair).is_none()
        {
            let message = format!("Slowdown: {} wrong keys per 1 minute", self.wrong_per_minute);
            return Err(ApiError::new(StatusCode::TOO_MANY_REQUESTS, message).after(wait));
        }
        if let Some(limits) = keys.current().find(key) {
            lock(&self.known).entry(pair, || ());
            return Ok(limits);
        }
        let mut wrong = lock(&self.wrong_keys);
        wrong.entry(address, || Window { since: now, count: 0 }).add(self.wrong_per_minute, now);
        Err(ApiError::new(StatusCode::FORBIDDEN, "Invalid API key"))
    }
}

/// 400: a key is required.
pub(crate) fn no_key() -> ApiError {
    ApiError::bad("Please contact the server operator to get an API key")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of events of a client since the start of a time window.
#[derive(Clone, Copy, Debug)]
struct Window {
    since: Instant,
    count: u32,
}

impl Window {
    /// How long the window remains full, if it is full.
    fn full(&self, limit: u32, now: Instant) -> Option<Duration> {
        let passed = now.saturating_duration_since(self.since);
        (passed < MINUTE && self.count >= limit).then(|| MINUTE - passed)
    }

    /// Counts an event, or returns how long to wait for the next window.
    fn add(&mut self, limit: u32, now: Instant) -> Option<Duration> {
        if now.saturating_duration_since(self.since) >= MINUTE {
            *self = Window { since: now, count: 0 };
        }
        let full = self.full(limit, now);
        if full.is_none() {
            self.count += 1;
        }
        full
    }
}

/// A bounded map that evicts entries that have not been used recently. There are two generations:
/// entries move to the young one when they are used; when that holds half of the maximum size, the
/// old one is dropped. Each access takes amortised O(1) time.
#[derive(Debug)]
struct Recent<K, V> {
    most: usize,
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Hash + Eq, V> Recent<K, V> {
    fn new(most: usize) -> Self {
        Recent { most, young: HashMap::new(), old: HashMap::new() }
    }

    /// The value of a key, without marking it as used.
    fn get(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    /// The value of a key, which is inserted if missing.
    fn entry(&mut self, key: K, new: impl FnOnce() -> V) -> &mut V {
        if self.young.len() >= self.most / 2 && !self.young.contains_key(&key) {
            // The key may be among those that are dropped.
            let value = self.old.remove(&key);
            self.old = std::mem::take(&mut self.young);
            return self.young.entry(key).or_insert_with(|| value.unwrap_or_else(new));
        }
        let old = self.old.remove(&key);
        match old {
            Some(value) => self.young.entry(key).or_insert(value),
            None => self.young.entry(key).or_insert_with(new),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeyFile;
    use std::net::{IpAddr, Ipv6Addr};

    fn client(n: u32) -> ClientAddress {
        IpAddr::from(n.to_be_bytes()).into()
    }

    fn limits(per_minute: u32) -> Limits {
        Limits { requests_per_minute: Some(per_minute), wrong_keys_per_minute: 3, ..Limits::default() }
    }

    #[test]
    fn a_client_has_a_number_of_requests_per_minute() {
        let gate = Gate::new(None, &limits(2));
        let start = Instant::now();
        let admit = |n, after| gate.admit_at(None, client(n), start + Duration::from_secs(after));
        assert!(admit(1, 0).is_ok() && admit(1, 0).is_ok());
        let refused = admit(1, 20).unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.message.as_str()), (429, "Slowdown: 2 per 1 minute"));
        assert_eq!(refused.retry_after, Some(Duration::from_secs(40)));
        assert!(admit(2, 0).is_ok(), "another client has its own");
        assert!(admit(1, 60).is_ok(), "a new minute");
        // Changing the lower half of an IPv6 address does not give a new quota.
        let v6 = |n: u16| IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n)).into();
        let outcomes = [1, 2, 3].map(|n| gate.admit_at(None, v6(n), start).is_ok());
        assert_eq!(outcomes, [true, true, false]);
    }

    #[test]
    fn many_clients_do_not_make_the_gate_forget_an_active_one() {
        let gate = Gate::new(None, &limits(1));
        let now = Instant::now();
        gate.admit_at(None, client(0), now).unwrap();
        for n in 1..=3 * CLIENTS as u32 {
            gate.admit_at(None, client(n), now).unwrap();
            if n % 1000 == 0 {
                assert!(gate.admit_at(None, client(0), now).is_err(), "forgotten after {n} others");
            }
        }
        let requests = gate.requests.lock().unwrap();
        assert!(requests.young.len() + requests.old.len() <= CLIENTS);
    }

    fn keys(text: &str) -> Keys {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        std::fs::write(&file, text).unwrap();
        Keys::load(&file).unwrap()
    }

    #[test]
    fn keys_are_read_and_required() {
        let gate = Gate::new(Some(keys("# ours\n\n secret \n")), &Limits::default());
        assert!(gate.admit(Some(&KeyHash::of("secret")), client(1)).is_ok());
        let wrong = gate.admit(Some(&KeyHash::of("other")), client(1));
        assert_eq!(wrong.unwrap_err().status, StatusCode::FORBIDDEN);
        assert_eq!(gate.admit(None, client(1)).unwrap_err().status, StatusCode::BAD_REQUEST);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        std::fs::write(&file, "# none\n").unwrap();
        let error = Keys::load(&file).unwrap_err().to_string();
        assert!(error.ends_with("there is no key in it; one per line is expected"), "{error}");
    }

    #[test]
    fn a_key_may_have_limits_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        let own = KeyLimits { requests_per_minute: Some(3), characters: Some(7) };
        let slow = KeyLimits { requests_per_minute: Some(1), characters: None };
        let add = |name, limits| KeyHash::of(&KeyFile::add(&file, name, limits, None).unwrap());
        let keys = [add("own", own), add("slow", slow), add("usual", KeyLimits::default())];
        let gate = Gate::new(Some(Keys::load(&file).unwrap()), &limits(2));
        let now = Instant::now();
        let allowed = keys.map(|key| {
            let admitted = (0..5).filter(|_| gate.admit_at(Some(&key), client(1), now).is_ok());
            admitted.count()
        });
        assert_eq!(allowed, [3, 1, 2]);
        let later = now + MINUTE;
        assert_eq!(gate.admit_at(Some(&keys[0]), client(1), later).unwrap(), own);
    }

    #[test]
    fn wrong_keys_are_counted() {
        let gate = Gate::new(
            Some(keys("first\nsecond\n")),
            &Limits { wrong_keys_per_minute: 3, ..Limits::default() },
        );
        let start = Instant::now();
        let status = |key: &str, n, after| {
            let key = KeyHash::of(key);
            let outcome = gate.admit_at(Some(&key), client(n), start + Duration::from_secs(after));
            outcome.map_or_else(|error| error.status.as_u16(), |_| 200)
        };
        assert_eq!(status("first", 1, 0), 200);
        assert_eq!([0, 1, 2].map(|after| status("guess", 1, after)), [403; 3]);
        // From now on a correct guess looks like a wrong one.
        assert_eq!((status("guess", 1, 3), status("second", 1, 3)), (429, 429));
        assert_eq!(status("first", 1, 3), 200, "it was valid at this address before");
        assert_eq!(status("second", 2, 3), 200, "another address");
        assert_eq!((status("second", 1, 60), status("guess", 1, 60)), (200, 403));
    }

    #[test]
    fn what_is_used_is_kept() {
        let mut recent = Recent::new(4);
        for n in 0..10 {
            *recent.entry(0, || 0) += 1;
            recent.entry(100 + n, || 0);
            assert!(recent.young.len() + recent.old.len() <= 4);
        }
        assert_eq!((recent.get(&0), recent.get(&100)), (Some(&10), None));
    }
}
