//! The memory that a request holds for its body and the values of the body, see [`windlass_runtime::body_budget`].

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use windlass_runtime::body_budget::{BodyMemory, NoBodyMemory};

/// The memory of one request, shared by everything that uses the body or its values: the guard, the body, and work that
/// goes on when the client has left. It is given back when the last of them is dropped. A request without a body has none.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestMemory(Arc<Mutex<Option<BodyMemory>>>);

impl RequestMemory {
    pub(super) fn new(memory: BodyMemory) -> Self {
        RequestMemory(Arc::new(Mutex::new(Some(memory))))
    }

    /// The body, which holds this memory as long as it lives.
    pub(super) fn hold(&self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(HeldBytes { bytes, _memory: self.clone() })
    }

    /// Gives the memory back: the values of the body belong to the runtime now.
    pub(crate) fn release(&self) {
        self.lock().take();
    }

    /// Holds so many bytes more, for values that are built from a text in the body.
    pub(crate) async fn add(&self, n_bytes: usize) -> Result<(), NoBodyMemory> {
        let Some(mut memory) = self.lock().take() else { return Ok(()) };
        memory.add(n_bytes).await?;
        *self.lock() = Some(memory);
        Ok(())
    }

    /// Holds memory only for the few bytes that the request keeps while it waits.
    pub(crate) async fn keep(&self, n_bytes: usize) -> Result<(), NoBodyMemory> {
        let Some(mut memory) = self.lock().take() else { return Ok(()) };
        memory.keep(n_bytes).await?;
        *self.lock() = Some(memory);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Option<BodyMemory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RequestMemory {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<RequestMemory>().cloned().unwrap_or_default())
    }
}

struct HeldBytes {
    bytes: Vec<u8>,
    _memory: RequestMemory,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Body;
    use axum::extract::{FromRequest, Request};
    use serde::de::{Deserialize, Deserializer, IgnoredAny};
    use tokio::sync::{Notify, Semaphore};
    use windlass_runtime::body_budget::BodyBudget;

    use super::*;
    use crate::extract::JsonBody;
    use crate::guard::LARGE_BYTES;

    static READING: Notify = Notify::const_new();
    static GATE: Semaphore = Semaphore::const_new(0);

    /// A body that is read for as long as the gate is closed.
    struct Gated;

    impl<'de> Deserialize<'de> for Gated {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            READING.notify_one();
            tokio::runtime::Handle::current().block_on(GATE.acquire()).unwrap().forget();
            IgnoredAny::deserialize(from).map(|_| Gated)
        }
    }

    #[tokio::test]
    async fn the_work_on_a_body_holds_its_memory_when_the_client_has_left() {
        const ALL: usize = 336 << 20;
        let budget = BodyBudget::default();
        let mut memory = budget.begin();
        memory.complete(ALL).await.unwrap();
        let memory = RequestMemory::new(memory);
        let mut body = vec![b' '; LARGE_BYTES];
        body.extend_from_slice(b"{}");
        let request = Request::new(Body::from(memory.hold(body)));
        drop(memory);
        let reading = tokio::spawn(JsonBody::<Gated>::from_request(request, &()));
        READING.notified().await;
        reading.abort();
        assert!(reading.await.err().unwrap().is_cancelled());
        let mut other = budget.begin();
        let early = tokio::time::timeout(Duration::from_millis(50), other.grow_to(ALL)).await;
        assert!(early.is_err(), "another body had the memory while the work went on");
        GATE.add_permits(1);
        assert_eq!(other.grow_to(ALL).await, Ok(()));
    }
}
