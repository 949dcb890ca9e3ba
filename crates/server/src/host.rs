//! The `Host` check against DNS rebinding. A web page can point a name of its own at this machine and then counts as
//! the server's own origin; the router therefore answers only under names that such a page cannot own.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::middleware::Next;
use axum::response::Response;

use crate::Options;
use crate::guard;
use crate::problem::{ApiError, Code};

/// Names under which the server answers, beside IP addresses and `localhost`.
#[derive(Clone)]
pub(crate) struct HostCheck {
    names: Arc<[String]>,
}

impl HostCheck {
    pub(crate) fn new(options: &Options) -> Self {
        let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let names = options.hosts.iter().cloned().chain([own]);
        HostCheck { names: names.map(|name| canonical(&name)).collect() }
    }

    fn verify(&self, request: &Request) -> Result<(), ApiError> {
        let mut asked = requested(request)?.into_iter();
        let Some(authority) = asked.find(|authority| !self.allows(authority.host())) else { return Ok(()) };
        let name: String = authority.host().chars().take(100).collect();
        let detail = format!(
            "this server is not known as `{name}`: use its IP address or localhost, or start it with --host {name}"
        );
        Err(ApiError::new(Code::UnknownHost, detail))
    }

    /// An IP address cannot be rebound to another machine, so every one is allowed.
    fn allows(&self, host: &str) -> bool {
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        if bare.parse::<IpAddr>().is_ok() {
            return true;
        }
        let name = canonical(host);
        name == "localhost" || self.names.contains(&name)
    }
}

/// Names are compared without regard to case and to the dot of the root zone.
fn canonical(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// The hosts that the request asks for: in its request line, in its `Host` header, or in both. A proxy may go by the
/// other one than this server does, so each of them counts.
fn requested(request: &Request) -> Result<Vec<Authority>, ApiError> {
    let mut asked: Vec<Authority> = request.uri().authority().cloned().into_iter().collect();
    if !asked.iter().all(is_plain) {
        return Err(unreadable());
    }
    let headers: Vec<&HeaderValue> = request.headers().get_all(HOST).iter().collect();
    match headers.as_slice() {
        // HTTP/2 has the host in its request line alone.
        [] if !asked.is_empty() => {}
        [host] => asked.push(read(host)?),
        _ => {
            let detail = "the request needs exactly one Host header: send the name or address of the server";
            return Err(ApiError::new(Code::BadHeader, detail));
        }
    }
    Ok(asked)
}

fn read(host: &HeaderValue) -> Result<Authority, ApiError> {
    let authority = host.to_str().ok().and_then(|text| text.parse::<Authority>().ok());
    authority.filter(is_plain).ok_or_else(unreadable)
}

fn unreadable() -> ApiError {
    let detail = "the host of the request is not a host name: send a name or an address and a port";
    ApiError::new(Code::BadHeader, detail)
}

/// Whether there is nothing beside the host and a port. The parser finds the host `[::1]` in `[::1].evil.example`.
fn is_plain(authority: &Authority) -> bool {
    let beside = authority.as_str().strip_prefix(authority.host());
    let is_port =
        |rest: &str| rest.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()));
    beside.is_some_and(|rest| rest.is_empty() || is_port(rest))
}

/// Refuses a request for an unknown host before any other check sees it.
pub(crate) async fn check(State(hosts): State<HostCheck>, request: Request, next: Next) -> Response {
    match hosts.verify(&request) {
        Ok(()) => next.run(request).await,
        Err(error) => guard::refuse(request.uri().path(), &error),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn verdict(check: &HostCheck, hosts: &[&str], uri: &str) -> Result<(), Code> {
        let mut request = Request::builder().uri(uri);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        check.verify(&request.body(Body::empty()).unwrap()).map_err(|error| error.code())
    }

    #[test]
    fn addresses_localhost_and_named_hosts_are_allowed() {
        let check = HostCheck::new(&Options { hosts: vec!["Jobs.Example".to_owned()], ..Options::default() });
        let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
        for host in [
            "127.0.0.1:8070",
            "10.1.2.3",
            "[::1]:8070",
            "[::1]",
            "localhost:1",
            "LocalHost",
            "jobs.example.:80",
            &own,
        ] {
            assert_eq!(verdict(&check, &[host], "/"), Ok(()), "{host}");
        }
        assert_eq!(verdict(&check, &["localhost:8070"], "http://127.0.0.1:8070/"), Ok(()));
        assert_eq!(verdict(&check, &[], "http://localhost:8070/"), Ok(()));
    }

    #[test]
    fn other_names_are_refused() {
        let check = HostCheck::new(&Options::default());
        for host in
            ["evil.example:8070", "localhost.evil.example", "127.0.0.1.evil.example", "2130706433", "jobs"]
        {
            assert_eq!(verdict(&check, &[host], "/"), Err(Code::UnknownHost), "{host}");
        }
        for (host, uri) in [("localhost", "http://evil.example/"), ("evil.example", "http://localhost:8070/")]
        {
            assert_eq!(verdict(&check, &[host], uri), Err(Code::UnknownHost), "{host} {uri}");
        }
    }

    #[test]
    fn a_missing_doubled_or_unreadable_host_is_a_bad_request() {
        let check = HostCheck::new(&Options::default());
        let wrong: [&[&str]; 7] = [
            &[],
            &["localhost", "localhost"],
            &[""],
            &["a b"],
            &["user@localhost"],
            &["[::1].evil.example"],
            &["localhost:evil"],
        ];
        for hosts in wrong {
            assert_eq!(verdict(&check, hosts, "/"), Err(Code::BadHeader), "{hosts:?}");
        }
        assert_eq!(verdict(&check, &["localhost"], "http://evil.example@localhost/"), Err(Code::BadHeader));
    }
}
