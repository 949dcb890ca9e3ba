//! Clients by their addresses: how many connections one has open, or, behind a trusted proxy, how many requests.
//!
//! The connections of a proxy belong to many clients, so a trusted proxy has no limit of connections; its requests count
//! for the address that it forwards in `X-Forwarded-For`. Clients on this machine have no limit.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::HeaderMap;

/// The header in which proxies add the address that a request came from, one behind the other.
const FORWARDED_FOR: &str = "x-forwarded-for";
/// Bits of an IPv6 address that name the network of one client.
const CLIENT_BITS: u32 = 64;

/// A network of addresses, such as `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    /// Leading bits that all its addresses share.
    n_bits: u32,
}

impl Network {
    /// Reads an address, or a network as ADDRESS/BITS.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no network: write an address or one such as 10.0.0.0/8");
        let (address, n_bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let n_bits_max = if address.is_ipv4() { 32 } else { 128 };
        let n_bits = n_bits.map_or(Ok(n_bits_max), str::parse).map_err(|_| wrong())?;
        if n_bits > n_bits_max {
            return Err(format!("`{text}` has more than {n_bits_max} bits: write fewer behind the slash"));
        }
        Ok(Network { address, n_bits })
    }

    fn contains(&self, address: IpAddr) -> bool {
        let prefix = |bits: u128, width: u32| bits.checked_shr(width - self.n_bits).unwrap_or(0);
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                prefix(u128::from(own.to_bits()), 32) == prefix(u128::from(other.to_bits()), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                prefix(own.to_bits(), 128) == prefix(other.to_bits(), 128)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.n_bits)
    }
}

/// The counts of all clients. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct ClientLimits {
    /// 0 = no limit.
    n_max: usize,
    trusted: Arc<[Network]>,
    open: Arc<Mutex<BTreeMap<IpAddr, usize>>>,
}

impl ClientLimits {
    pub(super) fn new(n_max: usize, trusted: &[Network]) -> Self {
        ClientLimits { n_max, trusted: trusted.into(), open: Arc::default() }
    }

    /// Counts a connection until the result is dropped; `None` = its client has too many.
    pub(super) fn connect(&self, peer: IpAddr) -> Option<ClientSlot> {
        let peer = peer.to_canonical();
        self.count(if self.is_trusted(peer) { None } else { limited(peer) })
    }

    /// The address of the client of a request, and its count until that is dropped; `None` = the client has too many.
    /// The connection of a client without a proxy is counted already.
    pub(super) fn request(&self, peer: IpAddr, headers: &HeaderMap) -> (IpAddr, Option<ClientSlot>) {
        let peer = peer.to_canonical();
        if !self.is_trusted(peer) {
            return (peer, self.count(None));
        }
        let client = self.forwarded(headers).unwrap_or(peer);
        let counted = if self.is_trusted(client) { None } else { limited(client) };
        (client, self.count(counted))
    }

    /// The last address that no trusted proxy has: earlier ones are claims of that client.
    fn forwarded(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let lines: Vec<&str> =
            headers.get_all(FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok()).collect();
        let hops = lines.iter().rev().flat_map(|line| line.rsplit(',')).map(address_of);
        let mut last = None;
        for hop in hops {
            let Some(hop) = hop else { break };
            last = Some(hop);
            if !self.is_trusted(hop) {
                break;
            }
        }
        last
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(address))
    }

    fn count(&self, client: Option<IpAddr>) -> Option<ClientSlot> {
        let Some(client) = client.filter(|_| self.n_max > 0) else {
            return Some(ClientSlot { client: None, open: self.open.clone() });
        };
        let mut open = lock(&self.open);
        let n = open.entry(client).or_default();
        if *n >= self.n_max {
            return None;
        }
        *n += 1;
        Some(ClientSlot { client: Some(client), open: self.open.clone() })
    }
}

/// One of the connections or requests of a client.
#[derive(Debug)]
pub(super) struct ClientSlot {
    client: Option<IpAddr>,
    open: Arc<Mutex<BTreeMap<IpAddr, usize>>>,
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        let Some(client) = self.client else { return };
        let mut open = lock(&self.open);
        if let Some(n) = open.get_mut(&client) {
            *n -= 1;
            if *n == 0 {
                open.remove(&client);
            }
        }
    }
}

fn lock(open: &Mutex<BTreeMap<IpAddr, usize>>) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
    // A panic elsewhere leaves nothing half done here.
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The address under which a client is counted; none for this machine. A client with IPv6 has a whole network.
fn limited(client: IpAddr) -> Option<IpAddr> {
    match client {
        _ if client.is_loopback() => None,
        IpAddr::V4(_) => Some(client),
        IpAddr::V6(v6) => {
            Some(IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> (128 - CLIENT_BITS) << (128 - CLIENT_BITS))))
        }
    }
}

/// Reads an address with or without a port.
fn address_of(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let address =
        text.parse().or_else(|_| text.parse().map(|with_port: std::net::SocketAddr| with_port.ip()));
    let bare = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    address.ok().or_else(bare).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn headers(lines: &[&str]) -> HeaderMap {
        let name = axum::http::HeaderName::from_static(FORWARDED_FOR);
        lines.iter().map(|line| (name.clone(), line.parse().unwrap())).collect()
    }

    fn limits(n_max: usize, trusted: &[&str]) -> ClientLimits {
        let trusted: Vec<Network> = trusted.iter().map(|text| Network::parse(text).unwrap()).collect();
        ClientLimits::new(n_max, &trusted)
    }

    #[test]
    fn networks_are_read_and_matched() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("0.0.0.0/0", "203.0.113.1", "::1"),
            ("2001:db8::/32", "2001:db8:1::1", "2001:db9::1"),
            ("::/0", "2001:db9::1", "10.0.0.1"),
        ] {
            let network = Network::parse(network).unwrap();
            assert!(network.contains(ip(inside)) && !network.contains(ip(outside)), "{network}");
        }
        for wrong in ["", "10.0.0.0/33", "10.0.0/8", "10.0.0.0/", "10.0.0.0/-1", "::/129", "proxy.example"] {
            assert!(Network::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_client_has_so_many_connections_and_loopback_any_number() {
        let limits = limits(2, &["198.51.100.0/24"]);
        let client = ip("203.0.113.7");
        let first = limits.connect(client).unwrap();
        let _second = limits.connect(ip("::ffff:203.0.113.7")).unwrap();
        assert!(limits.connect(client).is_none());
        let _other = limits.connect(ip("203.0.113.8")).unwrap();
        drop(first);
        let _third = limits.connect(client).unwrap();
        // One network of IPv6 is one client.
        let _v6 = [limits.connect(ip("2001:db8::1")).unwrap(), limits.connect(ip("2001:db8::2")).unwrap()];
        assert!(limits.connect(ip("2001:db8::3")).is_none());
        let _v6 = limits.connect(ip("2001:db8:0:1::1")).unwrap();
        for free in ["127.0.0.1", "::1", "198.51.100.9"] {
            let held: Vec<_> = (0..10).map(|_| limits.connect(ip(free))).collect();
            assert!(held.iter().all(Option::is_some), "{free}");
        }
        let unlimited = ClientLimits::new(0, &[]);
        let held: Vec<_> = (0..10).map(|_| unlimited.connect(client)).collect();
        assert!(held.iter().all(Option::is_some));
    }

    #[test]
    fn slots_that_are_free_are_forgotten() {
        let limits = limits(2, &[]);
        drop((limits.connect(ip("203.0.113.7")), limits.connect(ip("203.0.113.7"))));
        assert!(lock(&limits.open).is_empty());
    }

    #[test]
    fn only_a_trusted_proxy_names_the_client_and_only_the_last_one_counts() {
        let limits = limits(1, &["127.0.0.1", "10.0.0.0/8"]);
        let cases: [(&str, &[&str], &str); 9] = [
            ("203.0.113.9", &["192.0.2.1"], "203.0.113.9"),
            ("127.0.0.1", &[], "127.0.0.1"),
            ("127.0.0.1", &["192.0.2.1"], "192.0.2.1"),
            ("127.0.0.1", &["8.8.8.8, 192.0.2.1"], "192.0.2.1"),
            ("127.0.0.1", &["8.8.8.8, 192.0.2.1, 10.1.2.3"], "192.0.2.1"),
            ("127.0.0.1", &["8.8.8.8", "192.0.2.1"], "192.0.2.1"),
            ("127.0.0.1", &["192.0.2.1:4711"], "192.0.2.1"),
            ("127.0.0.1", &["[2001:db8::1]:4711"], "2001:db8::1"),
            ("127.0.0.1", &["8.8.8.8, nonsense, 10.1.2.3"], "10.1.2.3"),
        ];
        for (peer, lines, expected) in cases {
            assert_eq!(limits.request(ip(peer), &headers(lines)).0, ip(expected), "{peer} {lines:?}");
        }
        let of_client = headers(&["192.0.2.1"]);
        let (_, held) = limits.request(ip("127.0.0.1"), &of_client);
        assert!(held.is_some() && limits.request(ip("127.0.0.1"), &of_client).1.is_none());
        assert!(limits.request(ip("127.0.0.1"), &headers(&["192.0.2.2"])).1.is_some());
        assert!(limits.request(ip("127.0.0.1"), &headers(&[])).1.is_some());
        drop(held);
        assert!(limits.request(ip("127.0.0.1"), &of_client).1.is_some());
    }
}
