//! Addresses that may be called. A worker tells its own address, and must not be able to make this server call anything
//! else: its own network, a cloud's metadata service, a printer.
//!
//! An address is checked when a worker registers, again before each call, and once more when a name is resolved for the
//! connection, so a name that resolves differently the second time gains nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::Settings;

/// Bytes of a worker's address: no address that is meant well is longer.
const URL_BYTES_MAX: usize = 2_048;
/// How long a registration waits for a name to resolve. A name that does not resolve yet may do so later.
const LOOKUP: Duration = Duration::from_secs(2);

/// The kind of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddressKind {
    Loopback,
    Private,
    Public,
    /// Never called, with the reason.
    Never(&'static str),
}

/// Which addresses are called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AddressPolicy {
    /// Whether private networks are.
    private: bool,
}

impl AddressPolicy {
    pub(crate) fn of(settings: &Settings) -> Self {
        AddressPolicy { private: settings.allow_worker_net }
    }

    /// Parses an address and returns the reason why it may not be called, as far as that is known without resolving its
    /// name.
    pub(crate) fn read(self, text: &str) -> Result<Url, String> {
        if text.len() > URL_BYTES_MAX {
            return Err(format!("the url is longer than {URL_BYTES_MAX} bytes: shorten it"));
        }
        let named = |reason: &str| format!("url `{text}`: {reason}");
        let url = Url::parse(text).map_err(|error| {
            named(&format!("{error}; write it as http://host:port", error = error.to_string().to_lowercase()))
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(named("only http and https can be called: write it as http://host:port"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(named("has a user or a password: leave them out"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(named("has a query or a fragment: leave them out"));
        }
        if url.port() == Some(0) {
            return Err(named("port 0 cannot be called: name the real one"));
        }
        match url.host_str().map(literal) {
            None => Err(named("has no host: write it as http://host:port")),
            Some(None) => Ok(url),
            Some(Some(ip)) => self.judge(ip).map(|()| url).map_err(|reason| named(&reason)),
        }
    }

    /// Returns the reason why an address may not be called; resolves its name.
    pub(crate) async fn check(self, text: &str) -> Result<(), String> {
        let url = self.read(text)?;
        let Some(host) = url.host_str().filter(|host| literal(host).is_none()) else { return Ok(()) };
        match tokio::time::timeout(LOOKUP, self.resolve(host)).await {
            Ok(Err(Unresolved::Forbidden(reason))) => Err(format!("url `{text}`: {reason}")),
            Ok(Ok(_) | Err(Unresolved::Unknown(_))) | Err(_) => Ok(()),
        }
    }

    /// The addresses of a name, without those that may not be called.
    async fn resolve(self, name: &str) -> Result<Vec<IpAddr>, Unresolved> {
        let found = tokio::net::lookup_host((name, 0)).await;
        let found =
            found.map_err(|error| Unresolved::Unknown(format!("`{name}` does not resolve: {error}")))?;
        let mut open = Vec::new();
        let mut forbidden = None;
        for ip in found.map(|address| address.ip()) {
            match self.judge(ip) {
                Ok(()) => open.push(ip),
                Err(reason) => forbidden = Some(format!("`{name}` means {ip}: {reason}")),
            }
        }
        match (open.is_empty(), forbidden) {
            (false, _) => Ok(open),
            (true, Some(reason)) => Err(Unresolved::Forbidden(reason)),
            (true, None) => Err(Unresolved::Unknown(format!("`{name}` means no address"))),
        }
    }

    fn judge(self, ip: IpAddr) -> Result<(), String> {
        match kind_of(ip) {
            AddressKind::Loopback | AddressKind::Public => Ok(()),
            AddressKind::Private if self.private => Ok(()),
            AddressKind::Private => {
                Err("it is in a private network: start the server with --allow-worker-net".to_owned())
            }
            AddressKind::Never(what) => {
                Err(format!("it is {what}, which is never called: use another address"))
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Unresolved {
    Unknown(String),
    Forbidden(String),
}

/// Resolves names for connections, to nothing that may not be called.
impl Resolve for AddressPolicy {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = *self;
        Box::pin(async move {
            match policy.resolve(name.as_str()).await {
                Ok(open) => {
                    let addresses: Addrs = Box::new(open.into_iter().map(|ip| (ip, 0).into()));
                    Ok(addresses)
                }
                Err(Unresolved::Unknown(reason) | Unresolved::Forbidden(reason)) => Err(reason.into()),
            }
        })
    }
}

/// The address a host is, if it is not a name. The parser of urls has already made one of every way to write it.
fn literal(host: &str) -> Option<IpAddr> {
    let inside = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    inside.parse().ok()
}

fn kind_of(ip: IpAddr) -> AddressKind {
    match ip {
        IpAddr::V4(ip) => kind_of_v4(ip),
        IpAddr::V6(ip) => kind_of_v6(ip),
    }
}

fn kind_of_v4(ip: Ipv4Addr) -> AddressKind {
    match ip.octets() {
        [127, ..] => AddressKind::Loopback,
        [0, ..] => AddressKind::Never("an unspecified address"),
        [169, 254, ..] => AddressKind::Never("a link-local address"),
        // Metadata services of clouds outside the link-local range.
        [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192] => {
            AddressKind::Never("a metadata address")
        }
        [224..=239, ..] => AddressKind::Never("a multicast address"),
        [240..=255, ..] => AddressKind::Never("a reserved or broadcast address"),
        [192, 0, 0, _] | [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => {
            AddressKind::Never("a reserved address")
        }
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] | [198, 18..=19, ..] => {
            AddressKind::Private
        }
        _ => AddressKind::Public,
    }
}

fn kind_of_v6(ip: Ipv6Addr) -> AddressKind {
    if let Some(mapped) = ip.to_ipv4_mapped() {
        return kind_of_v4(mapped);
    }
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressKind::Loopback,
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressKind::Never("an unspecified address"),
        [0xfe80..=0xfebf, ..] => AddressKind::Never("a link-local address"),
        [0xff00..=0xffff, ..] => AddressKind::Never("a multicast address"),
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254] => AddressKind::Never("a metadata address"),
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => AddressKind::Private,
        [0x2001, 0x0db8, ..] | [0x0100, 0, 0, 0, ..] => AddressKind::Never("a reserved address"),
        [0x2001, 0, ..] => AddressKind::Never("a tunnel to another address"),
        // IPv6 forms of an IPv4 address: the embedded address decides.
        [0, 0, 0, 0, 0, 0, high, low] | [0x0064, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            translated(v4(high, low))
        }
        [0x0064, 0xff9b, ..] => AddressKind::Never("a tunnel to another address"),
        _ => AddressKind::Public,
    }
}

fn translated(ip: Ipv4Addr) -> AddressKind {
    match kind_of_v4(ip) {
        AddressKind::Loopback => AddressKind::Never("a tunnel to this machine"),
        other @ (AddressKind::Private | AddressKind::Public | AddressKind::Never(_)) => other,
    }
}

#[cfg(test)]
mod tests;
