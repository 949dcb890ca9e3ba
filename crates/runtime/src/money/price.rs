//! Prices of services. A run carries the prices of its start in its journal, a job the price of its creation, so a new
//! price changes nothing that has begun.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Mutex;
use windlass_engine::job::JobSpec;
use windlass_engine::money::Price;
use windlass_engine::problem::Problem;
use windlass_store::StoreError;
use windlass_store::account::PriceRow;

use crate::RuntimeError;
use crate::money::Money;
use crate::part::RuntimePart;

/// Services with a price, at most: every read of prices reads all of them.
pub const PRICES_MAX: usize = 10_000;

/// Prices by service.
pub(crate) type PriceList = BTreeMap<String, Price>;

/// The cache of prices. Used only if the store is not shared: other servers may set prices, too.
#[derive(Default)]
pub(super) struct Prices {
    /// `None` = not known: they are read.
    list: RwLock<Option<Arc<PriceList>>>,
    /// Held during a change, so that the cache ends with the last written price.
    writing: Mutex<()>,
}

impl Prices {
    fn known(&self) -> Option<Arc<PriceList>> {
        self.list.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, list: Option<PriceList>) {
        *self.list.write().unwrap_or_else(PoisonError::into_inner) = list.map(Arc::new);
    }
}

/// Why a price was not set.
#[derive(Debug, thiserror::Error)]
pub enum PriceError {
    /// Everything that is wrong; paths begin with `$.`.
    #[error("the price cannot be set: {} problems", .0.len())]
    Problems(Vec<Problem>),
    #[error("there are {PRICES_MAX} prices already: delete one that is not needed")]
    TooMany,
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl From<StoreError> for PriceError {
    fn from(error: StoreError) -> Self {
        PriceError::Runtime(error.into())
    }
}

impl Money {
    /// Reads the prices of services, which runs are given at their start.
    pub(crate) async fn load_prices(&self) -> Result<(), RuntimeError> {
        let list = self.read_prices().await?;
        self.state().prices.keep(Some(list));
        Ok(())
    }

    /// The current prices, for runs and jobs that begin now.
    pub(crate) async fn price_list(&self) -> Result<Arc<PriceList>, RuntimeError> {
        if !self.is_shared()
            && let Some(list) = self.state().prices.known()
        {
            return Ok(list);
        }
        Ok(Arc::new(self.read_prices().await?))
    }

    async fn read_prices(&self) -> Result<PriceList, StoreError> {
        let rows = self.store().prices(self.project()).await?;
        Ok(rows.into_iter().map(|row| (row.service, row.price)).collect())
    }

    /// Sets the price of a service from now on.
    pub async fn set_price(&self, service: &str, price: Price) -> Result<PriceRow, PriceError> {
        self.runs().admit()?;
        let problems = price.problems();
        if !problems.is_empty() {
            return Err(PriceError::Problems(problems));
        }
        let _alone = self.state().prices.writing.lock().await;
        let known = self.price_list().await?;
        if known.len() >= PRICES_MAX && !known.contains_key(service) {
            return Err(PriceError::TooMany);
        }
        let row = PriceRow { service: service.to_owned(), price, updated_at: self.clock().now() };
        let saved = self.store().set_price(self.project(), row.clone()).await;
        self.changed(&known, saved, |list| {
            list.insert(row.service.clone(), row.price.clone());
        })?;
        Ok(row)
    }

    /// Asks nothing for a service from now on; `false` = it had no price.
    pub async fn delete_price(&self, service: &str) -> Result<bool, RuntimeError> {
        self.runs().admit()?;
        let _alone = self.state().prices.writing.lock().await;
        let known = self.read_prices().await?;
        let saved = self.store().delete_price(self.project(), service).await;
        self.changed(&known, saved, |list| {
            list.remove(service);
        })?;
        Ok(known.contains_key(service))
    }

    /// Updates the cache after a change. If the outcome is unknown, the next read asks the store.
    fn changed(
        &self,
        before: &PriceList,
        saved: Result<(), StoreError>,
        change: impl FnOnce(&mut PriceList),
    ) -> Result<(), StoreError> {
        let list = saved.is_ok().then(|| {
            let mut list = before.clone();
            change(&mut list);
            list
        });
        self.state().prices.keep(list);
        saved
    }

    /// The same jobs, each with its current price.
    pub(crate) async fn priced(&self, mut specs: Vec<JobSpec>) -> Result<Vec<JobSpec>, RuntimeError> {
        if specs.iter().any(|spec| spec.account.is_some()) {
            let prices = self.price_list().await?;
            for spec in &mut specs {
                spec.price = prices.get(&spec.name).filter(|_| spec.account.is_some()).cloned();
            }
        }
        Ok(specs)
    }
}
