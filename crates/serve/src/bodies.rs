//! The memory limits for request bodies.
//!
//! There are two pools: one for requests that have been admitted, and one for requests whose key is
//! not known yet because it may be in the body. A client without a key can exhaust only the second.
//! Within a pool, each client is limited to a share.

use crate::clients::ClientAddress;
use crate::error::{ApiError, ApiResult};
use crate::keys::KeyHash;
use crate::limits::Limits;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of bodies of maximum size that a pool holds at once; it can hold more smaller ones.
const ADMITTED: usize = 16;
const UNVERIFIED: usize = 4;

/// A client may hold at most this fraction (1/4) of a pool.
const SHARE: usize = 4;

/// The owner of a body, to which its bytes are charged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// A request with a valid key.
    Key(KeyHash),
    /// A request that needs no key.
    Address(ClientAddress),
    /// A request whose key may be in its body.
    Unverified(ClientAddress),
}

/// The bodies of all requests in progress.
#[derive(Debug)]
pub(crate) struct Bodies {
    admitted: Pool,
    unverified: Pool,
}

#[derive(Debug)]
struct Pool {
    most: usize,
    share: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    bytes: usize,
    by_owner: HashMap<Owner, usize>,
}

impl Pool {
    fn new(bodies: usize, largest: usize) -> Self {
        let most = largest.saturating_mul(bodies);
        // A share always has room for one body of maximum size.
        Pool { most, share: (most / SHARE).max(largest), held: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bodies {
    pub(crate) fn new(limits: &Limits) -> Self {
        Bodies {
            admitted: Pool::new(ADMITTED, limits.body_bytes),
            unverified: Pool::new(UNVERIFIED, limits.body_bytes),
        }
    }

    fn pool(&self, owner: &Owner) -> &Pool {
        match owner {
            Owner::Key(_) | Owner::Address(_) => &self.admitted,
            Owner::Unverified(_) => &self.unverified,
        }
    }
}

/// The reserved bytes of a body, released on drop.
#[derive(Debug)]
pub(crate) struct BodyBytes {
    bodies: Arc<Bodies>,
    owner: Owner,
    bytes: usize,
}

impl BodyBytes {
    pub(crate) fn new(bodies: &Arc<Bodies>, owner: Owner) -> Self {
        BodyBytes { bodies: Arc::clone(bodies), owner, bytes: 0 }
    }

    /// Reserves more bytes, if the pool has room.
    pub(crate) fn add(&mut self, bytes: usize) -> ApiResult<()> {
        let pool = self.bodies.pool(&self.owner);
        let mut held = pool.lock();
        let own = held.by_owner.get(&self.owner).copied().unwrap_or(0);
        if own.saturating_add(bytes) > pool.share {
            return Err(ApiError::busy("too many large requests of this client at once, try again"));
        }
        if held.bytes.saturating_add(bytes) > pool.most {
            return Err(ApiError::busy(match self.owner {
                Owner::Unverified(_) => {
                    "too many large requests at once; a key in the Authorization header goes first"
                }
                _ => "too many large requests at once, try again",
            }));
        }
        held.bytes += bytes;
        *held.by_owner.entry(self.owner.clone()).or_default() += bytes;
        self.bytes += bytes;
        Ok(())
    }
}

impl BodyBytes {
    /// Charges the bytes to another owner from now on.
    pub(crate) fn transfer(&mut self, owner: Owner) -> ApiResult<()> {
        let mut moved = BodyBytes::new(&self.bodies, owner);
        moved.add(self.bytes)?;
        *self = moved;
        Ok(())
    }
}

impl Drop for BodyBytes {
    fn drop(&mut self) {
        let mut held = self.bodies.pool(&self.owner).lock();
        held.bytes -= self.bytes;
        if let Some(own) = held.by_owner.get_mut(&self.owner) {
            *own -= self.bytes;
            if *own == 0 {
                held.by_owner.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;
    use std::time::Duration;

    fn client(n: u8) -> ClientAddress {
        IpAddr::from([192, 0, 2, n]).into()
    }

    #[test]
    fn a_client_has_a_share_of_the_pool() {
        let bodies = Arc::new(Bodies::new(&Limits { body_bytes: 10, ..Limits::default() }));
        let of = |n| BodyBytes::new(&bodies, Owner::Address(client(n)));
        let (mut first, mut again) = (of(1), of(1));
        assert!(first.add(30).is_ok() && again.add(10).is_ok());
        let refused = again.add(1).unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.retry_after), (503, Some(Duration::from_secs(1))));
        assert_eq!(refused.message, "too many large requests of this client at once, try again");
        // Other clients have their own shares, until the pool is full.
        let mut others: Vec<BodyBytes> = (2..=4).map(of).collect();
        assert!(others.iter_mut().all(|body| body.add(40).is_ok()));
        assert_eq!(of(5).add(1).unwrap_err().message, "too many large requests at once, try again");
        drop(first);
        assert!(of(5).add(30).is_ok());
        drop((again, others));
        let held = bodies.admitted.lock();
        assert!(held.bytes == 0 && held.by_owner.is_empty(), "{held:?}");
    }

    #[test]
    fn clients_without_a_key_take_nothing_from_those_with_one() {
        let bodies = Arc::new(Bodies::new(&Limits { body_bytes: 10, ..Limits::default() }));
        let mut unverified: Vec<BodyBytes> =
            (0..20).map(|n| BodyBytes::new(&bodies, Owner::Unverified(client(n)))).collect();
        let held = unverified.iter_mut().filter_map(|body| body.add(10).ok()).count();
        assert_eq!(held, UNVERIFIED);
        let mut keyed = BodyBytes::new(&bodies, Owner::Key(KeyHash::of("secret")));
        assert!(keyed.add(30).is_ok());
        // A body that turns out to contain a key makes room for others without one.
        unverified[0].transfer(Owner::Key(KeyHash::of("secret"))).unwrap();
        assert!(keyed.add(1).is_err() && unverified[10].add(10).is_ok());
    }
}
