//! Bodies of requests: read within limits of size, time and memory, and checked before values are built from them.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use hyper::body::{Body as _, Frame};
use tokio::time::{Instant, timeout, timeout_at};
use windlass_engine::json::{JsonFlaw, JsonFlawKind, check_json};
use windlass_runtime::body_budget::{ArrivingBody, BodyBudget, BodyMemory};

use super::memory::RequestMemory;
use crate::Options;
use crate::problem::{ApiError, ApiResult, Code};

/// How much of a body that is too large is read and thrown away, so that its sender reads the answer instead of a
/// broken connection; and how long that may take.
const DRAIN_BYTES: usize = 64 << 20;
const DRAIN: Duration = Duration::from_secs(10);
/// The first allocation for a body.
const FIRST_BYTES: usize = 64 << 10;
/// Larger bodies are checked and parsed on a blocking thread.
pub(crate) const LARGE_BYTES: usize = 256 << 10;

/// Reads bodies.
#[derive(Clone)]
pub(super) struct BodyReader {
    budget: BodyBudget,
    /// How long a body may be silent.
    silence: Duration,
    /// How long a body may take.
    total: Duration,
    /// Bytes in a second, on average, from the first silence on.
    rate_min: usize,
}

impl BodyReader {
    pub(super) fn new(options: &Options, budget: BodyBudget) -> Self {
        BodyReader {
            budget,
            silence: options.body_timeout,
            total: options.body_total_timeout,
            rate_min: options.body_rate_min.max(1),
        }
    }

    /// Reads a body to its end and checks it. The memory covers the body and the values that it describes.
    pub(super) async fn read(
        &self,
        headers: &HeaderMap,
        mut body: Body,
        most: usize,
    ) -> ApiResult<(Bytes, RequestMemory)> {
        check_media(headers)?;
        let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        let declared = length.and_then(|length| length.parse::<usize>().ok());
        let (begun, arriving) = (Instant::now(), self.budget.arrive());
        if declared.is_some_and(|length| length > most) {
            self.drain(&mut body, &arriving).await;
            return Err(too_large(most));
        }
        let (mut bytes, mut memory) = (Vec::new(), self.budget.begin());
        while let Some(frame) = self.next(&mut body, &arriving, begun, bytes.len()).await? {
            let Ok(data) = frame.into_data() else { continue };
            let n_bytes = bytes.len().saturating_add(data.len());
            if n_bytes > most {
                drop((bytes, memory));
                arriving.came(0);
                self.drain(&mut body, &arriving).await;
                return Err(too_large(most));
            }
            memory.grow_to(n_bytes).await?;
            arriving.came(n_bytes);
            if n_bytes > bytes.capacity() {
                bytes.reserve_exact(capacity_for(n_bytes, declared) - bytes.len());
            }
            bytes.extend_from_slice(&data);
        }
        drop(arriving);
        let (tree_bytes, bytes, mut memory) = check_bytes(bytes, memory).await?;
        memory.complete(bytes.len().saturating_add(tree_bytes)).await?;
        let memory = RequestMemory::new(memory);
        Ok((memory.hold(bytes), memory))
    }

    /// The next part of a body of which so many bytes have come.
    async fn next(
        &self,
        body: &mut Body,
        arriving: &ArrivingBody,
        begun: Instant,
        n_bytes: usize,
    ) -> ApiResult<Option<Frame<Bytes>>> {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
        // The time that these bytes may have taken at the lowest rate.
        let earned = Duration::from_millis((n_bytes as u64).saturating_mul(1_000) / self.rate_min as u64);
        let limit = begun + self.total.min(self.silence.saturating_add(earned));
        let silent_at = Instant::now() + self.silence;
        let Some(came) = arriving.wait_for(timeout_at(limit.min(silent_at), frame)).await else {
            let detail = "others need the memory or the connection of the body, which is the slowest: send it again, \
                          faster";
            return Err(ApiError::new(Code::SlowBody, detail).retry_after(Duration::from_secs(1)));
        };
        match came {
            Ok(None) => Ok(None),
            Ok(Some(Ok(frame))) => Ok(Some(frame)),
            Ok(Some(Err(_))) => {
                Err(ApiError::new(Code::MalformedJson, "the body ended before it was complete"))
            }
            Err(_) if silent_at <= limit => {
                let ms = self.silence.as_millis();
                Err(ApiError::new(
                    Code::SlowBody,
                    format!("no byte of the body came for {ms} ms: send it again"),
                ))
            }
            Err(_) => {
                let (ms, rate) = (begun.elapsed().as_millis(), self.rate_min);
                let detail = format!(
                    "{n_bytes} bytes of the body came in {ms} ms: send at least {rate} bytes in a second, \
                     and all of it within {} s",
                    self.total.as_secs()
                );
                Err(ApiError::new(Code::SlowBody, detail))
            }
        }
    }

    /// Reads on and throws away, within bounds.
    async fn drain(&self, body: &mut Body, arriving: &ArrivingBody) {
        let begun = Instant::now();
        let read = async {
            let mut n_bytes = 0usize;
            while let Ok(Some(frame)) = self.next(body, arriving, begun, n_bytes).await {
                n_bytes = n_bytes.saturating_add(frame.into_data().map_or(0, |data| data.len()));
                if n_bytes > DRAIN_BYTES {
                    return;
                }
            }
        };
        // A slower client gets a broken connection.
        drop(timeout(DRAIN, read).await);
    }
}

/// The capacity for so many bytes of a body: the declared length or a quarter of it, and so on. A body is thus moved
/// while it is small, and a sender of few bytes reserves little.
fn capacity_for(n_bytes: usize, declared: Option<usize>) -> usize {
    let Some(declared) = declared.filter(|declared| *declared >= n_bytes) else {
        return n_bytes.saturating_add(n_bytes / 2).max(FIRST_BYTES);
    };
    let mut capacity = declared;
    while capacity / 4 >= n_bytes.max(FIRST_BYTES) {
        capacity /= 4;
    }
    capacity
}

/// The bytes that the values of a body would take, with the body and its memory. A check goes on when the client leaves,
/// and so has both.
async fn check_bytes(bytes: Vec<u8>, memory: BodyMemory) -> ApiResult<(usize, Vec<u8>, BodyMemory)> {
    let is_large = bytes.len() > LARGE_BYTES;
    let check = move || (check_json(&bytes), bytes, memory);
    let (checked, bytes, memory) = if is_large {
        let checking = tokio::task::spawn_blocking(check);
        checking.await.map_err(|_| ApiError::new(Code::Internal, "the body could not be read: report it"))?
    } else {
        check()
    };
    Ok((checked.map_err(refuse_flaw)?, bytes, memory))
}

fn refuse_flaw(flaw: JsonFlaw) -> ApiError {
    match flaw.kind {
        JsonFlawKind::Deep => ApiError::new(Code::TooDeep, format!("the body: {flaw}")),
        JsonFlawKind::Heavy(_) => ApiError::new(Code::TooManyValues, format!("the body: {}", flaw.kind)),
        JsonFlawKind::KeyTwice | JsonFlawKind::LargeInteger => {
            ApiError::field(Code::InvalidBody, flaw.path, flaw.kind.to_string())
        }
    }
}

fn too_large(most: usize) -> ApiError {
    let detail = format!("the body is larger than {most} bytes: send less, or a reference to it");
    ApiError::new(Code::TooLarge, detail)
}

/// Refuses bodies that are encoded or that are declared to be something else than JSON in UTF-8.
fn check_media(headers: &HeaderMap) -> ApiResult<()> {
    let refuse = |detail: String| Err(ApiError::new(Code::UnsupportedMedia, detail));
    for encoding in headers.get_all(CONTENT_ENCODING) {
        let encoding = encoding.to_str().unwrap_or("?");
        if !encoding.split(',').all(|one| matches!(one.trim(), "" | "identity")) {
            let shown: String = encoding.chars().take(40).collect();
            return refuse(format!("the body is encoded as `{shown}`: send it without Content-Encoding"));
        }
    }
    let Some(declared) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let declared = declared.to_str().unwrap_or("?").to_ascii_lowercase();
    let shown: String = declared.chars().take(80).collect();
    let (kind, params) = declared.split_once(';').unwrap_or((&declared, ""));
    // Simple clients declare one of the latter, whatever they send.
    let is_taken = matches!(
        kind.trim(),
        "" | "application/json"
            | "text/json"
            | "text/plain"
            | "application/octet-stream"
            | "application/x-www-form-urlencoded"
    ) || kind.trim().ends_with("+json");
    if !is_taken {
        return refuse(format!("the body is declared as `{shown}`: send JSON as application/json"));
    }
    let charset = params.split(';').find_map(|param| param.trim().strip_prefix("charset="));
    if charset.is_some_and(|charset| !matches!(charset.trim_matches('"'), "utf-8" | "utf8" | "us-ascii")) {
        return refuse(format!("the body is declared as `{shown}`: send it in UTF-8"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn reader() -> BodyReader {
        BodyReader::new(&Options::default(), BodyBudget::default())
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit() {
        let huge = Body::from(vec![b' '; (1 << 20) + 1]);
        let refused = reader().read(&HeaderMap::new(), huge, 1 << 20).await.unwrap_err();
        assert_eq!(refused.code(), Code::TooLarge);
        let (bytes, _memory) =
            reader().read(&HeaderMap::new(), Body::from(vec![b' '; 1 << 20]), 1 << 20).await.unwrap();
        assert_eq!(bytes.len(), 1 << 20);
    }

    #[test]
    fn a_body_is_moved_while_it_is_small() {
        assert_eq!(capacity_for(10, Some(100)), 100);
        assert_eq!(capacity_for(10, Some(4 << 20)), 64 << 10);
        assert_eq!(capacity_for((256 << 10) + 1, Some(4 << 20)), 1 << 20);
        assert_eq!(capacity_for((1 << 20) + 1, Some(4 << 20)), 4 << 20);
        assert_eq!(capacity_for(100, Some(10)), FIRST_BYTES, "more came than was declared");
        assert_eq!(capacity_for(1 << 20, None), (1 << 20) + (1 << 19));
    }

    #[test]
    fn bodies_are_json_in_utf_8_and_not_encoded() {
        let check = |name: HeaderName, value: &'static str| {
            check_media(&HeaderMap::from_iter([(name, HeaderValue::from_static(value))]))
        };
        let taken = [
            "application/json",
            "Application/JSON; charset=UTF-8",
            "application/problem+json",
            "text/plain;charset=\"utf-8\"",
            "application/x-www-form-urlencoded",
        ];
        for kind in taken {
            assert!(check(CONTENT_TYPE, kind).is_ok(), "{kind}");
        }
        let refused = ["application/xml", "text/html", "multipart/form-data; boundary=x", "application/yaml"];
        for kind in refused.into_iter().chain(["application/json; charset=utf-16"]) {
            assert_eq!(check(CONTENT_TYPE, kind).unwrap_err().code(), Code::UnsupportedMedia, "{kind}");
        }
        assert!(check(CONTENT_ENCODING, "identity").is_ok());
        for encoding in ["gzip", "identity, br", "deflate"] {
            assert_eq!(check(CONTENT_ENCODING, encoding).unwrap_err().code(), Code::UnsupportedMedia);
        }
    }
}
