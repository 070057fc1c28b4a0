//! The address of a client, also behind proxies that the operator trusts.

use axum::http::{HeaderMap, HeaderName, header};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Bits of an IPv6 address that identify a client: providers assign a /64 or more to each customer.
const IPV6_PREFIX: u32 = 64;

/// The unit by which limits are counted: one IPv4 address, or one IPv6 /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientAddress(IpAddr);

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        ClientAddress(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(masked(address.to_bits(), IPV6_PREFIX))),
            v4 => v4,
        })
    }
}

fn masked(bits: u128, prefix: u32) -> u128 {
    bits & u128::MAX.checked_shl(128 - prefix).unwrap_or(0)
}

/// A range of addresses, such as `10.0.0.0/8`, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    /// The first address, IPv4 mapped into IPv6.
    first: u128,
    /// The number of leading bits that all addresses share, counted in IPv6.
    prefix: u32,
    /// IPv4 and IPv6 ranges never contain each other's addresses.
    v4: bool,
}

/// A text that is not an address range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidAddressRange(String);

impl fmt::Display for InvalidAddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not an IP address or a range such as 10.0.0.0/8 or fd00::/8", self.0)
    }
}

impl std::error::Error for InvalidAddressRange {}

fn bits(address: IpAddr) -> (u128, bool) {
    match address.to_canonical() {
        IpAddr::V4(v4) => (v4.to_ipv6_mapped().to_bits(), true),
        IpAddr::V6(v6) => (v6.to_bits(), false),
    }
}

impl FromStr for AddressRange {
    type Err = InvalidAddressRange;

    fn from_str(text: &str) -> Result<Self, InvalidAddressRange> {
        let invalid = || InvalidAddressRange(text.to_owned());
        let (address, prefix) = match text.trim().split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse::<u32>().map_err(|_| invalid())?)),
            None => (text.trim(), None),
        };
        let (first, v4) = bits(address.parse().map_err(|_| invalid())?);
        let width = if v4 { 32 } else { 128 };
        let prefix = prefix.unwrap_or(width);
        if prefix > width {
            return Err(invalid());
        }
        let prefix = 128 - width + prefix;
        Ok(AddressRange { first: masked(first, prefix), prefix, v4 })
    }
}

impl AddressRange {
    /// Whether an address lies in the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (address, v4) = bits(address);
        v4 == self.v4 && masked(address, self.prefix) == self.first
    }
}

/// Proxies whose `X-Forwarded-For` and `Forwarded` headers are believed.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustedProxies(Vec<AddressRange>);

impl TrustedProxies {
    pub(crate) fn new(ranges: Vec<AddressRange>) -> Self {
        TrustedProxies(ranges)
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|range| range.contains(address))
    }

    /// The client of a request from `peer`: the right-most hop that is not a trusted proxy. Headers
    /// from an untrusted peer are ignored. A proxy maintains one of the two headers and passes the
    /// other on as the client wrote it, so if both are present and disagree, neither is trusted.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.contains(peer) {
            return peer;
        }
        let list = |name: HeaderName| -> Vec<&str> {
            let values = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("unreadable"));
            values.flat_map(|value| value.split(',')).collect()
        };
        let addresses: Vec<_> = list(X_FORWARDED_FOR).into_iter().map(address).collect();
        let forwarded: Vec<_> = list(header::FORWARDED).into_iter().map(forwarded_for).collect();
        match (addresses.is_empty(), forwarded.is_empty()) {
            (true, true) => peer,
            (false, true) => self.last_untrusted(peer, &addresses),
            (true, false) => self.last_untrusted(peer, &forwarded),
            (false, false) => {
                let client = self.last_untrusted(peer, &addresses);
                if client == self.last_untrusted(peer, &forwarded) { client } else { peer }
            }
        }
    }

    /// Goes from the nearest hop to the farthest. Hops beyond an unreadable one are unknown.
    fn last_untrusted(&self, peer: IpAddr, hops: &[Option<IpAddr>]) -> IpAddr {
        let mut client = peer;
        for hop in hops.iter().rev() {
            let Some(hop) = hop else { break };
            client = *hop;
            if !self.contains(client) {
                break;
            }
        }
        client
    }
}

/// An address with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`,
/// `[2001:db8::1]:80`.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(address.ip());
    }
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
}

/// The `for` of an element of `Forwarded` (RFC 7239), such as `for="[2001:db8::1]:80";proto=https`.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    element
        .split(';')
        .find_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            name.trim().eq_ignore_ascii_case("for").then(|| value.trim().trim_matches('"'))
        })
        .and_then(address)
}

/// The address of requests without a socket, as in tests.
pub(crate) const NO_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(*name, axum::http::HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn ipv6_clients_are_counted_by_their_network() {
        let of = |text: &str| ClientAddress::from(ip(text));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_ne!(of("::ffff:192.0.2.1"), of("::ffff:192.0.2.2"));
    }

    #[test]
    fn ranges_contain_their_addresses() {
        for (range, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("192.0.2.7/31", "192.0.2.6", "192.0.2.8"),
            ("0.0.0.0/0", "203.0.113.9", "::1"),
            ("::/0", "2001:db8::1", "203.0.113.9"),
            ("fd00::/8", "fdab::1", "fe80::1"),
            ("::1", "::1", "::2"),
            ("127.0.0.0/8", "::ffff:127.0.0.1", "::1"),
        ] {
            let range: AddressRange = range.parse().unwrap();
            assert!(range.contains(ip(inside)), "{range:?} {inside}");
            assert!(!range.contains(ip(outside)), "{range:?} {outside}");
        }
        for text in ["", "x", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "10.0.0/8", "1.2.3.4/", "/8"] {
            let error = text.parse::<AddressRange>().unwrap_err().to_string();
            let want = "is not an IP address or a range such as 10.0.0.0/8 or fd00::/8";
            assert_eq!(error, format!("{text:?} {want}"));
        }
    }

    #[test]
    fn only_trusted_proxies_name_the_client() {
        let ranges = ["10.0.0.0/8", "fd00::/8"].map(|range| range.parse().unwrap());
        let proxies = TrustedProxies::new(ranges.into());
        for (peer, list, client) in [
            ("203.0.113.5", vec![("x-forwarded-for", "198.51.100.1")], "203.0.113.5"),
            ("10.0.0.1", vec![], "10.0.0.1"),
            ("10.0.0.1", vec![("x-forwarded-for", "198.51.100.1")], "198.51.100.1"),
            // Entries written by the client are further left.
            ("10.0.0.1", vec![("x-forwarded-for", "6.6.6.6, 198.51.100.1")], "198.51.100.1"),
            ("10.0.0.1", vec![("x-forwarded-for", "6.6.6.6, 198.51.100.1, 10.2.3.4")], "198.51.100.1"),
            (
                "10.0.0.1",
                vec![("x-forwarded-for", "6.6.6.6"), ("x-forwarded-for", "198.51.100.1:4711")],
                "198.51.100.1",
            ),
            ("10.0.0.1", vec![("x-forwarded-for", "10.0.0.9")], "10.0.0.9"),
            ("10.0.0.1", vec![("x-forwarded-for", "6.6.6.6, unknown, 10.0.0.2")], "10.0.0.2"),
            ("10.0.0.1", vec![("x-forwarded-for", "")], "10.0.0.1"),
            (
                "fd00::1",
                vec![("forwarded", "for=6.6.6.6, For=\"[2001:db8::7]:80\";proto=https")],
                "2001:db8::7",
            ),
            ("fd00::1", vec![("forwarded", "proto=https;for=198.51.100.1")], "198.51.100.1"),
            ("fd00::1", vec![("forwarded", "for=_hidden")], "fd00::1"),
            ("10.0.0.1", vec![("x-forwarded-for", "1.2.3.4"), ("forwarded", "for=1.2.3.4")], "1.2.3.4"),
            ("10.0.0.1", vec![("x-forwarded-for", "1.2.3.4"), ("forwarded", "for=6.6.6.6")], "10.0.0.1"),
            ("::ffff:10.0.0.1", vec![("x-forwarded-for", "1.2.3.4")], "1.2.3.4"),
        ] {
            assert_eq!(proxies.client(ip(peer), &headers(&list)), ip(client), "{peer} {list:?}");
        }
        let none = TrustedProxies::default();
        assert_eq!(none.client(ip("10.0.0.1"), &headers(&[("x-forwarded-for", "1.2.3.4")])), ip("10.0.0.1"));
    }
}
