//! Tracks the open connections: their number, their clients, and which of them are idle.
//!
//! An idle connection costs its client nothing, so it must not block others: when all slots are
//! taken, a new connection replaces the one that has been idle longest. A new connection is
//! rejected only if every other connection has a request in progress.

use crate::clients::ClientAddress;
use crate::limits::Limits;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Why a connection was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Every connection has a request in progress.
    Full,
    /// The client has the maximum number of connections.
    Address,
}

/// All open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    most: usize,
    per_address: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// A counter that numbers connections, and the times at which they become idle.
    next: u64,
    open: HashMap<u64, Entry>,
    /// The idle connections, by the time at which they became idle.
    waiting: BTreeMap<u64, u64>,
    by_address: HashMap<ClientAddress, usize>,
}

#[derive(Debug)]
struct Entry {
    /// `None` for a proxy, which stands for many clients.
    address: Option<ClientAddress>,
    end: Arc<Notify>,
    /// The number of requests in progress.
    requests: usize,
    waiting_since: u64,
}

impl Table {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Removes a connection and notifies the task that runs it.
    fn close(&mut self, id: u64) {
        let Some(entry) = self.open.remove(&id) else { return };
        entry.end.notify_one();
        self.waiting.remove(&entry.waiting_since);
        if let Some(address) = entry.address
            && let Some(count) = self.by_address.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
    }

    fn wait(&mut self, id: u64) {
        let now = self.number();
        if let Some(entry) = self.open.get_mut(&id) {
            entry.waiting_since = now;
            self.waiting.insert(now, id);
        }
    }
}

impl Connections {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Connections {
            most: limits.connections.max(1),
            per_address: limits.connections_per_address.max(1),
            table: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot for a connection from a client, or from a proxy if `address` is `None`.
    pub(crate) fn open(self: &Arc<Self>, address: Option<ClientAddress>) -> Result<ConnectionSlot, Refusal> {
        let mut table = self.lock();
        if let Some(address) = address
            && table.by_address.get(&address).is_some_and(|&count| count >= self.per_address)
        {
            return Err(Refusal::Address);
        }
        if table.open.len() >= self.most {
            let longest = table.waiting.first_key_value().map(|(_, &id)| id);
            table.close(longest.ok_or(Refusal::Full)?);
        }
        let (id, end) = (table.number(), Arc::new(Notify::new()));
        let entry = Entry { address, end: Arc::clone(&end), requests: 0, waiting_since: 0 };
        table.open.insert(id, entry);
        table.wait(id);
        if let Some(address) = address {
            *table.by_address.entry(address).or_default() += 1;
        }
        drop(table);
        Ok(ConnectionSlot { connections: Arc::clone(self), id, end })
    }
}

impl Connections {
    /// Closes the idle connections.
    pub(crate) fn close_waiting(&self) {
        let mut table = self.lock();
        while let Some((_, id)) = table.waiting.pop_first() {
            table.close(id);
        }
    }
}

/// The slot of a connection, released on drop.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    connections: Arc<Connections>,
    id: u64,
    end: Arc<Notify>,
}

impl ConnectionSlot {
    /// Resolves when another connection has taken over the slot.
    pub(crate) async fn taken(&self) {
        self.end.notified().await;
    }

    /// Marks the start of a request, which ends when the returned guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Answering {
        let mut table = self.connections.lock();
        let since = table.open.get_mut(&self.id).map(|entry| {
            entry.requests += 1;
            entry.waiting_since
        });
        if let Some(since) = since {
            table.waiting.remove(&since);
        }
        Answering(Arc::clone(self))
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.lock().close(self.id);
    }
}

/// A request in progress.
#[derive(Debug)]
pub(crate) struct Answering(Arc<ConnectionSlot>);

impl Drop for Answering {
    fn drop(&mut self) {
        let mut table = self.0.connections.lock();
        let left = table.open.get_mut(&self.0.id).map(|entry| {
            entry.requests -= 1;
            entry.requests
        });
        if left == Some(0) {
            table.wait(self.0.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;
    use std::time::Duration;

    fn client(n: u8) -> Option<ClientAddress> {
        Some(IpAddr::from([192, 0, 2, n]).into())
    }

    fn connections(most: usize, per_address: usize) -> Arc<Connections> {
        let limits = Limits { connections: most, connections_per_address: per_address, ..Limits::default() };
        Connections::new(&limits)
    }

    async fn is_taken(place: &ConnectionSlot) -> bool {
        tokio::time::timeout(Duration::ZERO, place.taken()).await.is_ok()
    }

    #[tokio::test]
    async fn a_new_connection_takes_the_place_of_the_one_that_has_waited_longest() {
        let connections = connections(3, 9);
        let places = [1, 2, 3].map(|n| Arc::new(connections.open(client(n)).unwrap()));
        // The first request has been answered in the meantime, and the second is in progress.
        drop(places[0].begin());
        let answering = places[1].begin();
        let fourth = connections.open(client(4)).unwrap();
        assert!(is_taken(&places[2]).await && !is_taken(&places[0]).await && !is_taken(&places[1]).await);
        let fifth = Arc::new(connections.open(client(5)).unwrap());
        assert!(is_taken(&places[0]).await && !is_taken(&fourth).await);
        drop(places);
        let both = (fifth.begin(), Arc::new(fourth).begin());
        assert_eq!(connections.open(client(6)).unwrap_err(), Refusal::Full);
        drop(answering);
        let sixth = connections.open(client(6)).unwrap();
        connections.close_waiting();
        assert!(is_taken(&sixth).await && !is_taken(&fifth).await);
        drop(both);
    }

    #[test]
    fn an_address_has_a_number_of_connections() {
        let connections = connections(9, 2);
        let own = [1, 1].map(|n| connections.open(client(n)).unwrap());
        assert_eq!(connections.open(client(1)).unwrap_err(), Refusal::Address);
        let others = [client(2), None, None, None].map(|address| connections.open(address).unwrap());
        drop(own);
        assert!(connections.open(client(1)).is_ok());
        drop(others);
        let table = connections.lock();
        assert!(
            table.open.is_empty() && table.waiting.is_empty() && table.by_address.is_empty(),
            "{table:?}"
        );
    }

    #[test]
    fn a_place_that_was_taken_is_freed_once() {
        let connections = connections(1, 9);
        let first = Arc::new(connections.open(client(1)).unwrap());
        let second = connections.open(client(1)).unwrap();
        drop(first.begin());
        drop(first);
        assert_eq!(connections.lock().open.len(), 1);
        drop(second);
        let table = connections.lock();
        assert!(
            table.open.is_empty() && table.waiting.is_empty() && table.by_address.is_empty(),
            "{table:?}"
        );
    }
}
