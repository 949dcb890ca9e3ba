//! The typed client of the native surface and of the queue platform surface. One client holds one pool of connections;
//! clones share it. Each noun has a handle that borrows the client, with the verbs of the command line:
//! `windlass run show ID` is `client.runs().show(id)`. Handles are `Copy` and their methods take them by value, so a
//! future borrows the client alone.
//!
//! ```no_run
//! # async fn example() -> Result<(), windlass_sdk::ClientError> {
//! use windlass_sdk::Client;
//! use windlass_sdk::contract::RunRequest;
//!
//! let client = Client::new("http://127.0.0.1:8070")?;
//! let started = client.runs().start("orders", &RunRequest::default()).await?;
//! let ended = client.runs().wait(&started.id, None).await?;
//! # Ok(())
//! # }
//! ```

mod accounts;
mod approvals;
mod audit;
mod bulks;
mod calls;
mod dead_letters;
mod events;
mod flows;
mod jobs;
mod keys;
mod prices;
mod queues;
mod runs;
mod schedules;
mod server;
mod services;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Method, RequestBuilder, StatusCode, Url, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_tls::rustls::ClientConfig;
use windlass_tls::{ClientTls, TlsError};

use crate::contract::PageQuery;
use crate::error::{ClientError, UNREACHABLE, UNSENDABLE};

pub use accounts::AccountsApi;
pub use approvals::ApprovalsApi;
pub use audit::AuditApi;
pub use bulks::BulksApi;
pub use calls::CallsApi;
pub use dead_letters::DeadLettersApi;
pub use events::{EventStream, ServerEvent};
pub use flows::FlowsApi;
pub use jobs::JobsApi;
pub use keys::KeysApi;
pub use prices::PricesApi;
pub use queues::QueuesApi;
pub use runs::RunsApi;
pub use schedules::SchedulesApi;
pub use services::ServicesApi;
pub use workers::{Registration, WorkersApi};

/// Items of a page that [`follow`] asks for.
const FOLLOW_LIMIT: usize = 1_000;

/// Reads all pages of a list, one after another.
async fn follow<T, P: Future<Output = Result<(Vec<T>, Option<String>), ClientError>>>(
    read: impl Fn(PageQuery) -> P,
) -> Result<Vec<T>, ClientError> {
    let (mut items, mut cursor) = (Vec::new(), None);
    loop {
        let (page, next) = read(PageQuery { cursor, limit: Some(FOLLOW_LIMIT) }).await?;
        items.extend(page);
        match next {
            Some(next) => cursor = Some(next),
            None => return Ok(items),
        }
    }
}

/// The header that says who asks.
const ACTOR: &str = "x-windlass-actor";
/// The variable with the API key.
const KEY_VARIABLE: &str = "WINDLASS_KEY";
/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The response time limit, beyond the time that the call asks the server to wait.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of one answer that are read: a list page, a run with its state and a journal all fit.
const RESPONSE_BYTES_MAX: usize = 64 << 20;
/// Tries of an idempotent call while the server is unreachable.
const TRIES_MAX: u32 = 4;
/// The first pause between tries; each next one is twice as long.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Whether a call may be made again when the server could not be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    Never,
    /// Doing it twice does no more than doing it once.
    Harmless,
}

/// A client of one server.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Arc<Url>,
    answer: Duration,
    /// The actor for the audit log.
    actor: Option<HeaderValue>,
    /// The credential: the API key with its scheme.
    key: Option<HeaderValue>,
}

impl Client {
    /// A client of the server at `base`, such as `http://127.0.0.1:8070`.
    pub fn new(base: &str) -> Result<Self, ClientError> {
        Client::with_timeout(base, RESPONSE_TIMEOUT)
    }

    /// A client with this response time limit, beyond the time that a call asks the server to wait.
    pub fn with_timeout(base: &str, answer: Duration) -> Result<Self, ClientError> {
        let unsendable = |why: String| ClientError::local(UNSENDABLE, why);
        let url = Url::parse(base.trim_end_matches('/'))
            .map_err(|error| unsendable(format!("`{base}` is no address: {error}")))?;
        let tls = match url.scheme() {
            _ if url.cannot_be_a_base() => None,
            "http" => Some(ClientTls::without_trust()),
            "https" => Some(ClientTls::default().config()),
            _ => None,
        };
        let wrong =
            || format!("`{base}` is no address of a server: write http://host:port or https://host:port");
        let tls = tls.ok_or_else(|| unsendable(wrong()))?;
        let client = Client { http: http_client(tls)?, base: Arc::new(url), answer, actor: None, key: None };
        match std::env::var(KEY_VARIABLE) {
            Ok(key) if !key.trim().is_empty() => client.with_key(&key),
            Ok(_) | Err(_) => Ok(client),
        }
    }

    /// The same client with other trust than that of the system, or with a certificate of its own, for an `https` server.
    pub fn with_tls(self, tls: &ClientTls) -> Result<Self, ClientError> {
        if self.base.scheme() != "https" {
            let why = format!(
                "a certificate has no effect for {}: write https://, or leave the certificate out",
                self.base()
            );
            return Err(ClientError::local(UNSENDABLE, why));
        }
        Ok(Client { http: http_client(tls.config())?, ..self })
    }

    /// The same client with this API key. Without it, the client takes the key of the variable `WINDLASS_KEY`.
    pub fn with_key(self, key: &str) -> Result<Self, ClientError> {
        let mut key = HeaderValue::try_from(format!("Bearer {}", key.trim())).map_err(|_| {
            // The text may be a key, so it is not repeated.
            let why = "the API key has characters that no key has: copy it again";
            ClientError::local(UNSENDABLE, why.to_owned())
        })?;
        key.set_sensitive(true);
        Ok(Client { key: Some(key), ..self })
    }

    /// Adds the credential to a request.
    fn authorized(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.key {
            Some(key) => request.header(header::AUTHORIZATION, key),
            None => request,
        }
    }

    /// The same client, which says who asks: the server notes it with every change. At most 200 visible characters.
    pub fn acting_as(self, actor: &str) -> Result<Self, ClientError> {
        let actor = HeaderValue::from_bytes(actor.trim().as_bytes()).map_err(|_| {
            ClientError::local(
                UNSENDABLE,
                format!("{actor:?} cannot be sent: give a name of visible characters"),
            )
        })?;
        Ok(Client { actor: Some(actor), ..self })
    }

    /// The base URL of the server.
    pub fn base(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Makes any call, for routes without a method here. `path` starts at the root and may have a query.
    pub async fn raw(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, String), ClientError> {
        let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes())
            .map_err(|_| ClientError::local(UNSENDABLE, format!("`{method}` is no method")))?;
        let url = self
            .base
            .join(path)
            .map_err(|error| ClientError::local(UNSENDABLE, format!("`{path}` is no path: {error}")))?;
        let (status, bytes, _) =
            self.send(&OutgoingRequest { method, url, body, wait: Duration::ZERO }).await?;
        Ok((status.as_u16(), String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The address of a path, each segment encoded by itself: names may hold slashes.
    pub(crate) fn url(&self, segments: &[&str], query: &[(&str, String)]) -> Url {
        let mut url = (*self.base).clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    /// The address of a route of the native surface.
    pub(crate) fn native(&self, segments: &[&str]) -> Url {
        self.url(&[&["api", "v1"], segments].concat(), &[])
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, url: Url) -> Result<T, ClientError> {
        self.call::<(), T>(Method::GET, url, None, Duration::ZERO, Repeat::Harmless).await
    }

    /// Sends an action that the last segment of the path names.
    pub(crate) async fn word<B: Serialize, T: DeserializeOwned>(
        &self,
        segments: &[&str],
        body: &B,
    ) -> Result<T, ClientError> {
        self.post(self.native(segments), body, Repeat::Harmless).await
    }

    pub(crate) async fn post<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        url: Url,
        body: &B,
        repeat: Repeat,
    ) -> Result<T, ClientError> {
        self.call(Method::POST, url, Some(body), Duration::ZERO, repeat).await
    }

    /// Makes a call; `wait` is how long the server was asked to hold its answer back.
    pub(crate) async fn call<B: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        method: Method,
        url: Url,
        body: Option<&B>,
        wait: Duration,
        repeat: Repeat,
    ) -> Result<T, ClientError> {
        let ask = OutgoingRequest { method, url, body, wait };
        let (status, bytes) = self.send_until_answered(&ask, repeat).await?;
        serde_json::from_slice(&bytes).map_err(|error| {
            let path = ask.url.path();
            ClientError::unreadable(status, format!("the response of {path} breaks the contract: {error}"))
        })
    }

    /// Fetches a document that is no JSON.
    pub(crate) async fn text(&self, url: Url) -> Result<String, ClientError> {
        let ask = OutgoingRequest::<()> { method: Method::GET, url, body: None, wait: Duration::ZERO };
        let (status, bytes) = self.send_until_answered(&ask, Repeat::Harmless).await?;
        String::from_utf8(bytes).map_err(|_| {
            let path = ask.url.path();
            ClientError::unreadable(status, format!("the response of {path} is no UTF-8 text"))
        })
    }

    /// Sends a request, again where that is harmless, until a server has answered it.
    async fn send_until_answered<B: Serialize + ?Sized>(
        &self,
        ask: &OutgoingRequest<'_, B>,
        repeat: Repeat,
    ) -> Result<(StatusCode, Vec<u8>), ClientError> {
        let mut pause = RETRY_DELAY;
        let mut n_tries = 1;
        let (status, bytes, retry_after) = loop {
            match self.send(ask).await {
                Err(error)
                    if error.code == UNREACHABLE && repeat == Repeat::Harmless && n_tries < TRIES_MAX =>
                {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                    n_tries += 1;
                }
                other => break other?,
            }
        };
        if !status.is_success() {
            return Err(ClientError::answered(status, retry_after, &bytes));
        }
        Ok((status, bytes))
    }

    async fn send<B: Serialize + ?Sized>(
        &self,
        ask: &OutgoingRequest<'_, B>,
    ) -> Result<(StatusCode, Vec<u8>, Option<Duration>), ClientError> {
        let mut request = self
            .http
            .request(ask.method.clone(), ask.url.clone())
            .timeout(self.answer.saturating_add(ask.wait));
        request = self.authorized(request);
        if let Some(actor) = &self.actor {
            request = request.header(ACTOR, actor);
        }
        if let Some(body) = ask.body {
            request = request.json(body);
        }
        let sending = |error: reqwest::Error| ClientError::sending(&error, self.base());
        let mut response = request.send().await.map_err(sending)?;
        let status = response.status();
        let retry_after = response
            .headers()
            .get(header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.parse().ok())
            .map(Duration::from_secs);
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(sending)? {
            if bytes.len().saturating_add(chunk.len()) > RESPONSE_BYTES_MAX {
                let why =
                    format!("the answer is larger than {RESPONSE_BYTES_MAX} bytes: ask for less at once");
                return Err(ClientError::unreadable(status, why));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok((status, bytes, retry_after))
    }
}

fn http_client(tls: Result<ClientConfig, TlsError>) -> Result<reqwest::Client, ClientError> {
    let tls = tls.map_err(|error| ClientError::local(UNSENDABLE, error.to_string()))?;
    // The server is named outright; a proxy for the wide world has no part in it.
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| ClientError::local(UNSENDABLE, format!("no client can be made: {error}")))
}

struct OutgoingRequest<'b, B: ?Sized> {
    method: Method,
    url: Url,
    body: Option<&'b B>,
    wait: Duration,
}

/// Appends the set fields of a query to a URL.
pub(crate) fn with_query(mut url: Url, query: &impl Serialize) -> Url {
    // Queries are flat objects of words and numbers: anything else would be a slip in this crate.
    let Ok(Value::Object(fields)) = serde_json::to_value(query) else { return url };
    for (name, value) in fields {
        match value {
            Value::Null => {}
            Value::String(text) => drop(url.query_pairs_mut().append_pair(&name, &text)),
            other => drop(url.query_pairs_mut().append_pair(&name, &other.to_string())),
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_set_is_asked_for() {
        let query =
            crate::contract::RunsQuery { q: Some("a b".to_owned()), limit: Some(5), ..Default::default() };
        let url = Client::new("http://127.0.0.1:1").unwrap().native(&["runs"]);
        assert_eq!(with_query(url, &query).as_str(), "http://127.0.0.1:1/api/v1/runs?limit=5&q=a+b");
    }

    #[test]
    fn names_with_slashes_are_one_segment() {
        let client = Client::new("http://127.0.0.1:8070/").unwrap();
        let url = client.url(&["api", "v1", "flows", "graph/a b"], &[("from", "1&2".to_owned())]);
        assert_eq!(url.as_str(), "http://127.0.0.1:8070/api/v1/flows/graph%2Fa%20b?from=1%262");
        assert_eq!(client.base(), "http://127.0.0.1:8070");
    }

    #[test]
    fn certificates_are_for_https_and_must_be_readable() {
        let tls = ClientTls { ca: Some("/no/such/ca.pem".into()), identity: None };
        let refused = |base| Client::new(base).unwrap().with_tls(&tls).unwrap_err().detail;
        assert!(refused("http://127.0.0.1:1").contains("write https://"));
        assert!(refused("https://127.0.0.1:1").contains("cannot read /no/such/ca.pem"));
    }

    #[test]
    fn only_addresses_of_servers_are_taken() {
        for bad in ["", "127.0.0.1:8070", "ftp://example.org", "mailto:ann@example.org"] {
            assert_eq!(Client::new(bad).unwrap_err().code, UNSENDABLE, "{bad}");
        }
        assert_eq!(Client::new("https://example.org").unwrap().base(), "https://example.org");
    }
}
