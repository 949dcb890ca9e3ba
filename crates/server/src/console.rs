//! The built console and the rendered documents: files of `ui-dist`, embedded in compressed form.
//!
//! Clients that take gzip get the embedded bytes; for all others a file is unpacked for the response. File names are
//! stable, so every response is revalidated by its `ETag`.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::LazyLock;

use axum::Router;
use axum::extract::Request;
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, REFERRER_POLICY, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};

use crate::problem::{ApiError, Code};

/// Paths of the files, without `.gz`, and their compressed bytes.
const EMBEDDED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/ui_files.rs"));
/// The page of the console; the script that it loads shows the page that the path names.
const SHELL: &str = "index.html";
/// The first segment of the paths of the console.
const PREFIX: &str = "/ui/";
/// The page of a program that was built without `ui-dist`.
const NOT_BUILT: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Windlass</title></head>\
     <body><h1>Windlass</h1><p>This program was built without the console. Build it with <code>./x ui</code> and compile \
     again. The API is at <a href=\"/openapi.json\">/openapi.json</a>.</p></body></html>\n";
/// Scripts come only from files of this server. CodeMirror sets styles from its script.
const POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     font-src 'self' data:; connect-src 'self'; worker-src 'self'; object-src 'none'; frame-ancestors 'none'; \
     base-uri 'none'; form-action 'self'";

/// One embedded file.
struct UiFile {
    bytes: &'static [u8],
    etag: HeaderValue,
    content_type: &'static str,
}

static FILES: LazyLock<BTreeMap<&'static str, UiFile>> = LazyLock::new(|| {
    let file = |&(path, bytes): &(&'static str, &'static [u8])| {
        let digest = Sha256::digest(bytes);
        let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        // Weak: the compressed and the unpacked response have the same tag.
        let etag =
            HeaderValue::from_str(&format!("W/\"{hex}\"")).expect("hexadecimal digits fit into a header");
        (path, UiFile { bytes, etag, content_type: content_type(path) })
    };
    EMBEDDED.iter().map(file).collect()
});

/// The routes of the console and of the documents.
pub(crate) fn routes() -> Router {
    Router::new()
        .route("/ui", get(shell))
        .route("/ui/", get(shell))
        .route("/ui/{*path}", get(page_or_file))
        .route("/docs", get(document))
        .route("/docs/", get(document))
        .route("/docs/{*path}", get(document))
}

/// Whether a client asks for a page: a browser that follows a link or a typed address.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    headers
        .get(ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"))
}

/// The shell, for an unknown path that a browser opens; `None` for all other requests. Paths of an API and names of
/// files are never answered with a page.
pub(crate) fn fallback(request: &Request) -> Option<Response> {
    let path = request.uri().path();
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_api = path == "/api" || path.starts_with("/api/");
    (is_read && !is_api && !names_a_file(path) && wants_page(request.headers()))
        .then(|| respond(SHELL, request.headers()).unwrap_or_else(not_built))
}

/// The shell of the console.
pub(crate) async fn shell(request: Request) -> Response {
    respond(SHELL, request.headers()).unwrap_or_else(not_built)
}

async fn page_or_file(request: Request) -> Response {
    let path = request.uri().path();
    let name = path.strip_prefix(PREFIX).unwrap_or_default();
    if name.starts_with("assets/") || names_a_file(path) {
        return respond(name, request.headers()).unwrap_or_else(|| missing(path));
    }
    shell(request).await
}

/// A rendered document: `/docs/queues` is `docs/queues.html`.
async fn document(request: Request) -> Response {
    let path = request.uri().path();
    let name = match path.trim_end_matches('/') {
        "/docs" => "docs/index.html".to_owned(),
        path if names_a_file(path) => path.trim_start_matches('/').to_owned(),
        path => format!("{}.html", path.trim_start_matches('/')),
    };
    respond(&name, request.headers()).unwrap_or_else(|| missing(path))
}

fn names_a_file(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|last| last.contains('.'))
}

fn not_built() -> Response {
    page(NOT_BUILT.into_response(), "text/html; charset=utf-8")
}

fn missing(path: &str) -> Response {
    let path: String = path.chars().take(200).collect();
    ApiError::new(Code::UnknownRoute, format!("there is no file at `{path}`: see /docs")).into_response()
}

/// A file as a response; `None` if it is not embedded.
fn respond(name: &str, headers: &HeaderMap) -> Option<Response> {
    let file = FILES.get(name)?;
    let mut response = if is_known(headers, &file.etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if takes_gzip(headers) {
        let mut response = file.bytes.into_response();
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
    } else {
        let mut unpacked = Vec::new();
        if let Err(error) = GzDecoder::new(file.bytes).read_to_end(&mut unpacked) {
            tracing::error!(%error, name, "an embedded file cannot be unpacked");
            return Some(
                ApiError::new(Code::Internal, "the file cannot be unpacked: report it").into_response(),
            );
        }
        unpacked.into_response()
    };
    response.headers_mut().insert(ETAG, file.etag.clone());
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
    Some(page(response, file.content_type))
}

fn page(mut response: Response, content_type: &'static str) -> Response {
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

fn is_known(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let strong = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let own = etag.to_str().map(strong).unwrap_or_default();
    let given = headers.get_all(IF_NONE_MATCH).iter().filter_map(|tags| tags.to_str().ok());
    given.flat_map(|tags| tags.split(',')).any(|tag| tag.trim() == "*" || strong(tag) == own)
}

/// Whether the client takes gzip: named, or by `*`, and not with the weight 0.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let given = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let codings = given.flat_map(|value| value.split(',')).filter_map(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next()?.to_ascii_lowercase();
        let weight =
            parts.find_map(|part| part.strip_prefix("q=")).map_or(Some(1.0), |weight| weight.parse().ok());
        Some((name, weight.unwrap_or(0.0_f32) > 0.0))
    });
    let codings: BTreeMap<String, bool> = codings.collect();
    codings.get("gzip").or_else(|| codings.get("*")).copied().unwrap_or(false)
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" | "webmanifest" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests;
