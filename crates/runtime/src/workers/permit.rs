//! Permits for calls to workers. A call waits for one and holds it; dropping it frees the worker's slot, however the call
//! ends.

use tokio::sync::oneshot;
use windlass_engine::effect::CallSpec;

use super::pool::{ChosenWorker, NoWorker, WorkerReply, WorkerRequest};
use crate::RuntimeError;
use crate::part::RuntimePart;
use crate::workers::Workers;

/// Why a call gets no permit.
#[derive(Debug)]
pub(crate) enum PermitError {
    NoWorker(NoWorker),
    /// The workers could not be read.
    Runtime(RuntimeError),
}

impl From<RuntimeError> for PermitError {
    fn from(error: RuntimeError) -> Self {
        PermitError::Runtime(error)
    }
}

/// A slot of a worker, or a position in the wait queue of its service. Dropping it frees the slot.
pub(crate) struct WorkerPermit<'r> {
    workers: &'r Workers,
    service: String,
    ticket: u64,
    reply: oneshot::Receiver<WorkerReply>,
}

impl<'r> WorkerPermit<'r> {
    /// Joins the wait queue for a worker of the order's service.
    pub(crate) async fn ask(workers: &'r Workers, spec: &CallSpec) -> Result<WorkerPermit<'r>, PermitError> {
        workers.load_workers().await?;
        let request = WorkerRequest {
            service: spec.service.clone(),
            priority: spec.priority,
            stays_with: spec.stays_with.clone(),
            avoid: spec.avoid.clone(),
            by_load: spec.weighted_by_load,
        };
        let (ticket, reply) =
            workers.state().pool().ask(request, workers.clock().now()).map_err(PermitError::NoWorker)?;
        let service = spec.service.clone();
        Ok(WorkerPermit { workers, service, ticket, reply })
    }

    /// Waits until a worker is free. The slot stays held until the permit is dropped.
    pub(crate) async fn worker(&mut self) -> Result<ChosenWorker, NoWorker> {
        (&mut self.reply).await.unwrap_or(Err(NoWorker::NoneAlive))
    }
}

impl Drop for WorkerPermit<'_> {
    fn drop(&mut self) {
        let now = self.workers.clock().now();
        self.workers.state().pool().leave(&self.service, self.ticket, now);
    }
}
