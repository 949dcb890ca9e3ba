//! Settings of services. Runs carry the recheck, the time limit and the priority from their start, so a change of these
//! affects later runs only; the number of calls to push workers holds at once.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use windlass_engine::event::ServiceTerms;
use windlass_store::page::NameRange;
use windlass_store::service::{ServiceRow, ServiceSettings};
use windlass_store::signing::SigningSecret;

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

/// The future of the secret of a service. Clients cannot read it, so a change of other settings keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretChange {
    Keep,
    Remove,
    Set(SigningSecret),
}

impl Calls {
    /// Sets the settings of a service, empty ones included; runs that were started before keep theirs.
    pub async fn set_service(
        &self,
        name: String,
        mut settings: ServiceSettings,
        secret: SecretChange,
    ) -> Result<ServiceRow, ServiceError> {
        let known = self.services(NameRange::All).await?;
        settings.secret = match secret {
            SecretChange::Set(secret) => Some(secret),
            SecretChange::Remove => None,
            SecretChange::Keep => {
                known.iter().find(|row| row.name == name).and_then(|row| row.settings.secret.clone())
            }
        };
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

    /// The secret under which calls to a worker of the service are signed, unless the worker has one of its own.
    pub(crate) fn service_secret(&self, name: &str) -> Option<SigningSecret> {
        self.state().secrets.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Reads the settings that runs carry from their start, and those of this server's calls.
    pub(crate) async fn load_services(&self) -> Result<(), RuntimeError> {
        let rows = self.services(NameRange::All).await?;
        let calls_max = rows.iter().filter_map(|row| Some((row.name.clone(), row.settings.calls_max?)));
        self.workers().limit_services(calls_max.collect());
        let secrets = rows.iter().filter_map(|row| Some((row.name.clone(), row.settings.secret.clone()?)));
        *self.state().secrets.write().unwrap_or_else(PoisonError::into_inner) = secrets.collect();
        let terms = rows.into_iter().map(|row| (row.name, terms_of(&row.settings)));
        let terms: BTreeMap<String, ServiceTerms> =
            terms.filter(|(_, terms)| *terms != ServiceTerms::default()).collect();
        *self.state().terms.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(terms);
        Ok(())
    }
}

fn terms_of(settings: &ServiceSettings) -> ServiceTerms {
    let ServiceSettings { recheck_ms, until_reported, timeout_ms, calls_max: _, priority, secret: _ } =
        *settings;
    ServiceTerms { recheck_ms, until_reported, timeout_ms, priority }
}
