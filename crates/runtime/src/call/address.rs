//! Which addresses may be called. A worker says where it is, and whoever says so must not be able to make this
//! server call something else: its own network, a cloud's metadata, a printer.
//!
//! An address is judged when it is registered, again when it is called, and whatever a name resolves to is judged
//! where the connection is made: a name that resolves to something else the second time gains nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::Settings;

/// Bytes of a worker's address: no address that is meant well is longer.
const URL_BYTES_MAX: usize = 2_048;
/// How long a registration waits to hear what a name means. A name that does not resolve yet may do so later.
const LOOKUP: Duration = Duration::from_secs(2);

/// What an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Loopback,
    Private,
    Public,
    /// Never called; says what it is.
    Never(&'static str),
}

/// Which addresses are called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    /// Whether private networks are.
    private: bool,
}

impl Policy {
    pub(crate) fn of(settings: &Settings) -> Self {
        Policy { private: settings.allow_worker_net }
    }

    /// Reads an address and says why it may not be called, as far as can be told without asking what a name means.
    pub(crate) fn read(self, text: &str) -> Result<Url, String> {
        if text.len() > URL_BYTES_MAX {
            return Err(format!("the url is longer than {URL_BYTES_MAX} bytes: shorten it"));
        }
        let named = |reason: &str| format!("url `{text}`: {reason}");
        let url = Url::parse(text).map_err(|error| {
            named(&format!("{error}; write it as http://host:port", error = error.to_string().to_lowercase()))
        })?;
        match url.scheme() {
            "http" => {}
            "https" => {
                return Err(named(
                    "https is not spoken by this server: use http, through a proxy if need be",
                ));
            }
            _ => return Err(named("only http can be called: write it as http://host:port")),
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

    /// Says why an address may not be called; asks what its name means now.
    pub(crate) async fn check(self, text: &str) -> Result<(), String> {
        let url = self.read(text)?;
        let Some(host) = url.host_str().filter(|host| literal(host).is_none()) else { return Ok(()) };
        match tokio::time::timeout(LOOKUP, self.resolve(host)).await {
            Ok(Err(Unresolved::Forbidden(reason))) => Err(format!("url `{text}`: {reason}")),
            Ok(Ok(_) | Err(Unresolved::Unknown(_))) | Err(_) => Ok(()),
        }
    }

    /// What a name means, without what may not be called.
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
        match place(ip) {
            Place::Loopback | Place::Public => Ok(()),
            Place::Private if self.private => Ok(()),
            Place::Private => {
                Err("it is in a private network: start the server with --allow-worker-net".to_owned())
            }
            Place::Never(what) => Err(format!("it is {what}, which is never called: use another address")),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Unresolved {
    Unknown(String),
    Forbidden(String),
}

/// Resolves names for connections, to nothing that may not be called.
impl Resolve for Policy {
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

fn place(ip: IpAddr) -> Place {
    match ip {
        IpAddr::V4(ip) => place_v4(ip),
        IpAddr::V6(ip) => place_v6(ip),
    }
}

fn place_v4(ip: Ipv4Addr) -> Place {
    match ip.octets() {
        [127, ..] => Place::Loopback,
        [0, ..] => Place::Never("an unspecified address"),
        [169, 254, ..] => Place::Never("a link-local address"),
        // Where clouds keep what their machines may know, outside of the link-local range.
        [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192] => Place::Never("a metadata address"),
        [224..=239, ..] => Place::Never("a multicast address"),
        [240..=255, ..] => Place::Never("a reserved or broadcast address"),
        [192, 0, 0, _] | [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Place::Never("a reserved address")
        }
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] | [198, 18..=19, ..] => {
            Place::Private
        }
        _ => Place::Public,
    }
}

fn place_v6(ip: Ipv6Addr) -> Place {
    if let Some(mapped) = ip.to_ipv4_mapped() {
        return place_v4(mapped);
    }
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Place::Loopback,
        [0, 0, 0, 0, 0, 0, 0, 0] => Place::Never("an unspecified address"),
        [0xfe80..=0xfebf, ..] => Place::Never("a link-local address"),
        [0xff00..=0xffff, ..] => Place::Never("a multicast address"),
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254] => Place::Never("a metadata address"),
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Place::Private,
        [0x2001, 0x0db8, ..] | [0x0100, 0, 0, 0, ..] => Place::Never("a reserved address"),
        [0x2001, 0, ..] => Place::Never("a tunnel to another address"),
        // Ways to an address of the older kind: what it leads to counts.
        [0, 0, 0, 0, 0, 0, high, low] | [0x0064, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            translated(v4(high, low))
        }
        [0x0064, 0xff9b, ..] => Place::Never("a tunnel to another address"),
        _ => Place::Public,
    }
}

fn translated(ip: Ipv4Addr) -> Place {
    match place_v4(ip) {
        Place::Loopback => Place::Never("a tunnel to this machine"),
        other @ (Place::Private | Place::Public | Place::Never(_)) => other,
    }
}

#[cfg(test)]
mod tests;
