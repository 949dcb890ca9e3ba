//! Settings of services. Runs carry the recheck intervals from their start, so a change affects later runs only.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use windlass_store::page::NameRange;
use windlass_store::service::{ServiceRow, ServiceSettings};

use crate::RuntimeError;
use crate::calls::Calls;
use crate::part::RuntimePart;

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

impl Calls {
    /// Sets the settings of a service, empty ones included; runs that were started before keep theirs.
    pub async fn set_service(
        &self,
        name: String,
        settings: ServiceSettings,
    ) -> Result<ServiceRow, ServiceError> {
        let known = self.services(NameRange::All).await?;
        let sets = settings != ServiceSettings::default();
        if sets && known.len() >= SERVICES_MAX && known.iter().all(|row| row.name != name) {
            return Err(ServiceError::TooMany);
        }
        let row = ServiceRow { name, settings, updated_at: self.clock().now() };
        self.store().save_service(self.project(), row.clone()).await.map_err(RuntimeError::from)?;
        self.load_services().await?;
        Ok(row)
    }

    /// Settings of services, by name.
    pub async fn services(&self, names: NameRange) -> Result<Vec<ServiceRow>, RuntimeError> {
        Ok(self.store().services(self.project(), names).await?)
    }

    /// Reads the settings that runs carry from their start.
    pub(crate) async fn load_services(&self) -> Result<(), RuntimeError> {
        let rows = self.services(NameRange::All).await?;
        let rechecks: BTreeMap<String, u64> =
            rows.into_iter().filter_map(|row| Some((row.name, row.settings.recheck_ms?))).collect();
        *self.state().rechecks.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rechecks);
        Ok(())
    }
}
