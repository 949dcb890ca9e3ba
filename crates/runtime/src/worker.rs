//! Workers: who is there, who lives, who gets the next call.

use windlass_store::worker::{WorkerBeat, WorkerQuery, WorkerRow};

use crate::{Runtime, RuntimeError};

/// Why a worker was not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Its address may not be called.
    #[error("{0}")]
    Address(String),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl Runtime {
    /// Registers a worker, or again.
    pub async fn register(&self, worker: WorkerRow) -> Result<(), RegisterError> {
        let _ = worker;
        unimplemented!()
    }

    /// A sign of life; `false` = nobody of that id is registered.
    pub async fn beat(&self, beat: WorkerBeat) -> Result<bool, RegisterError> {
        let _ = beat;
        unimplemented!()
    }

    /// Workers that match, dead or alive, by id.
    pub async fn workers(&self, query: WorkerQuery) -> Result<Vec<WorkerRow>, RuntimeError> {
        let _ = query;
        unimplemented!()
    }

    /// The least loaded live worker of a service.
    pub async fn allocate(&self, service: &str) -> Result<Option<WorkerRow>, RuntimeError> {
        let _ = service;
        unimplemented!()
    }
}
