//! A call's place at a worker: waited for, held, and given back however the call ends.

use tokio::sync::oneshot;
use windlass_engine::effect::Order;

use super::desk::{Chosen, Nobody, Told, Wish};
use crate::{Runtime, RuntimeError};

/// A place at a worker, or in the line for one. It is given back when this is dropped.
pub(crate) struct Place<'r> {
    runtime: &'r Runtime,
    service: String,
    ticket: u64,
    told: oneshot::Receiver<Told>,
}

impl<'r> Place<'r> {
    /// Lines up for a worker of the order's service.
    pub(crate) async fn ask(
        runtime: &'r Runtime,
        order: &Order,
    ) -> Result<Result<Place<'r>, Nobody>, RuntimeError> {
        runtime.load_workers().await?;
        let wish = Wish {
            service: order.service.clone(),
            priority: order.priority,
            avoid: order.avoid.clone(),
            by_load: order.weighted_by_load,
        };
        let asked = runtime.registry().desk().ask(wish, runtime.clock().now());
        let service = order.service.clone();
        Ok(asked.map(|(ticket, told)| Place { runtime, service, ticket, told }))
    }

    /// Waits until a worker is free. The place stays held until it is dropped.
    pub(crate) async fn worker(&mut self) -> Result<Chosen, Nobody> {
        (&mut self.told).await.unwrap_or(Err(Nobody::Alive))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let now = self.runtime.clock().now();
        self.runtime.registry().desk().leave(&self.service, self.ticket, now);
    }
}
