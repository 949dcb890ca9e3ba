//! `Warning` headers: remarks about a request, on surfaces whose answers have no place for them.

use axum::http::header::WARNING;
use axum::http::{HeaderMap, HeaderValue};

/// Headers of one response; a body may give reason for thousands.
pub(crate) const WARNINGS_MAX: usize = 20;
/// Characters of a text that are sent.
const TEXT_CHARS: usize = 300;

/// Adds a remark of this server to the headers of a response.
pub(crate) fn append_warning(headers: &mut HeaderMap, text: &str) {
    let text: String = text.chars().take(TEXT_CHARS).map(printable).collect();
    if let Ok(value) = HeaderValue::try_from(format!("299 windlass \"{text}\"")) {
        headers.append(WARNING, value);
    }
}

/// A character as a quoted text in a header may have it.
fn printable(c: char) -> char {
    if (c.is_ascii_graphic() || c == ' ') && !matches!(c, '"' | '\\') { c } else { '?' }
}
