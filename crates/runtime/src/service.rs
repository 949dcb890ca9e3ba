//! Services: what is set for the things that workers can do.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use windlass_store::record::Record;
use windlass_store::service::{ServiceRow, ServiceSettings};

use crate::{Runtime, RuntimeError};

/// Services that something can be set for.
pub const SERVICES_MAX: usize = 1_000;

/// Why nothing was set.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error("{SERVICES_MAX} services have settings already: set one of them to nothing first")]
    TooMany,
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl Runtime {
    /// Sets what holds for a service from now on, nothing included; runs that were started before keep what they were
    /// given.
    pub async fn set_service(
        &self,
        name: String,
        settings: ServiceSettings,
    ) -> Result<ServiceRow, ServiceError> {
        let known = self.services().await?;
        let sets = settings != ServiceSettings::default();
        if sets && known.len() >= SERVICES_MAX && known.iter().all(|row| row.name != name) {
            return Err(ServiceError::TooMany);
        }
        let row = ServiceRow { name, settings, updated_at: self.clock().now() };
        self.store().save(Record::Service(row.clone())).await.map_err(RuntimeError::from)?;
        self.load_services().await?;
        Ok(row)
    }

    /// What is set for services, by name.
    pub async fn services(&self) -> Result<Vec<ServiceRow>, RuntimeError> {
        Ok(self.store().services().await?)
    }

    /// Reads what runs are given at their start.
    pub(crate) async fn load_services(&self) -> Result<(), RuntimeError> {
        let rows = self.store().services().await?;
        let rechecks: BTreeMap<String, u64> =
            rows.into_iter().filter_map(|row| Some((row.name, row.settings.recheck_ms?))).collect();
        *self.rechecks().write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rechecks);
        Ok(())
    }
}
