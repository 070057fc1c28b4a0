//! Builds double-array tries with the units of the library `darts-clone`, which `charsmap.rs`
//! reads.
//!
//! A node's children are at `base ^ byte`; the value of a key that ends at the node is at `base`
//! itself. A unit holds its own byte, which distinguishes a child from other nodes' children,
//! whether there is a value, and the offset of its base from its own index.

use std::collections::BTreeMap;

/// A unit with this bit is a value.
const VALUE: u32 = 1 << 31;
/// A unit with this bit has a value at its base.
const HAS_VALUE: u32 = 1 << 8;
/// The position of the offset in a unit.
const OFFSET: u32 = 10;
/// Units come in blocks, so that `base ^ byte` never leaves the array.
const BLOCK: usize = 256;
/// Only this many units at the end are searched for a base: the gaps before them are not worth the
/// search.
const SEARCHED: usize = 16 * BLOCK;
/// The value of free units: a byte that does not occur in UTF-8.
const FREE: u32 = 0xff;
/// Offsets are below this; larger arrays would need the other form of a unit.
const MAX_UNITS: usize = 1 << 21;

/// A trie of bytes before its layout.
#[derive(Default)]
struct Node {
    children: BTreeMap<u8, Node>,
    value: Option<u32>,
}

struct Layout {
    units: Vec<u32>,
    used: Vec<bool>,
    is_base: Vec<bool>,
    /// All units before this are in use.
    first_free: usize,
}

/// The units of a trie of these keys, all non-empty and without zero bytes, with values below 2³¹;
/// `None` if there are too many of them.
pub(super) fn build<'a>(keys: impl IntoIterator<Item = (&'a str, u32)>) -> Option<Vec<u32>> {
    let mut root = Node::default();
    for (key, value) in keys {
        if key.is_empty() || key.contains('\0') || value & VALUE != 0 {
            return None;
        }
        let mut node = &mut root;
        for byte in key.bytes() {
            node = node.children.entry(byte).or_default();
        }
        node.value = Some(value);
    }
    let mut layout = Layout { units: Vec::new(), used: Vec::new(), is_base: Vec::new(), first_free: 1 };
    layout.reserve(0);
    layout.used[0] = true;
    layout.units[0] = 0;
    // A zero byte of the text would lead from it to the root.
    layout.is_base[0] = true;
    let mut waiting = vec![(0, &root)];
    while let Some((at, node)) = waiting.pop() {
        let base = layout.find_base(node)?;
        layout.units[at] |= ((at ^ base) as u32) << OFFSET;
        if let Some(value) = node.value {
            layout.units[at] |= HAS_VALUE;
            layout.take(base, value | VALUE);
        }
        for (&byte, child) in &node.children {
            let place = base ^ usize::from(byte);
            layout.take(place, u32::from(byte));
            waiting.push((place, child));
        }
    }
    Some(layout.units)
}

impl Layout {
    /// Extends the array to this index.
    fn reserve(&mut self, place: usize) {
        let length = (place + 1).next_multiple_of(BLOCK);
        if length > self.units.len() {
            self.units.resize(length, FREE);
            self.used.resize(length, false);
            self.is_base.resize(length, false);
        }
    }

    fn take(&mut self, place: usize, unit: u32) {
        self.units[place] = unit;
        self.used[place] = true;
        while self.used.get(self.first_free) == Some(&true) {
            self.first_free += 1;
        }
    }

    /// The first base that no other node uses and that has room for all children.
    fn find_base(&mut self, node: &Node) -> Option<usize> {
        let children = || node.children.keys().map(|&byte| usize::from(byte));
        let labels = || node.value.map(|_| 0).into_iter().chain(children());
        let first = labels().next().unwrap_or(0);
        for place in self.first_free.max(self.units.len().saturating_sub(SEARCHED)).. {
            let base = place ^ first;
            self.reserve(place.max(base));
            if self.units.len() > MAX_UNITS {
                break;
            }
            if !self.is_base[base] && labels().all(|label| !self.used[base ^ label]) {
                self.is_base[base] = true;
                return Some(base);
            }
        }
        None
    }
}
