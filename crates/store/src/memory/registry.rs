//! Services with their workers and prices, in one project.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::time::Timestamp;

use crate::account::PriceRow;
use crate::error::{Refusal, StoreError};
use crate::page::NameRange;
use crate::service::{LiveService, ServiceRow, ServiceSettings};
use crate::worker::{WorkerBeat, WorkerQuery, WorkerRow};

#[derive(Debug, Default)]
pub(super) struct ServiceRegistry {
    pub(super) workers: BTreeMap<String, WorkerRow>,
    prices: BTreeMap<String, PriceRow>,
    services: BTreeMap<String, ServiceRow>,
}

impl ServiceRegistry {
    pub(super) fn workers(&self, query: WorkerQuery) -> Result<Vec<WorkerRow>, StoreError> {
        let found = self.workers.values().filter(|row| row.matches(&query));
        Ok(found.take(query.ids.limit()).cloned().collect())
    }

    pub(super) fn save_worker(&mut self, row: WorkerRow) -> Result<(), StoreError> {
        self.workers.insert(row.id.clone(), row);
        Ok(())
    }

    pub(super) fn beat_worker(&mut self, beat: WorkerBeat) -> Result<(), StoreError> {
        let WorkerBeat { id, url, load, at } = beat;
        let row = self.workers.get_mut(&id).ok_or(Refusal::UnknownWorker(id))?;
        row.url = url.unwrap_or_else(|| std::mem::take(&mut row.url));
        row.load = load.unwrap_or(row.load);
        row.beat_at = row.beat_at.max(at);
        Ok(())
    }

    pub(super) fn drain_worker(&mut self, id: &str, is_draining: bool) -> Result<(), StoreError> {
        let row = self.workers.get_mut(id).ok_or_else(|| Refusal::UnknownWorker(id.to_owned()))?;
        row.is_draining = is_draining;
        Ok(())
    }

    pub(super) fn prices(&self) -> Result<Vec<PriceRow>, StoreError> {
        Ok(self.prices.values().cloned().collect())
    }

    pub(super) fn set_price(&mut self, row: PriceRow) -> Result<(), StoreError> {
        self.prices.insert(row.service.clone(), row);
        Ok(())
    }

    pub(super) fn delete_price(&mut self, service: &str) -> Result<(), StoreError> {
        self.prices.remove(service);
        Ok(())
    }

    pub(super) fn services(&self, names: NameRange) -> Result<Vec<ServiceRow>, StoreError> {
        let found = self.services.values().filter(|row| names.contains(&row.name));
        Ok(found.take(names.limit()).cloned().collect())
    }

    pub(super) fn live_services(
        &self,
        alive_since: Timestamp,
        names: NameRange,
    ) -> Result<Vec<LiveService>, StoreError> {
        let mut counts: BTreeMap<&str, LiveService> = BTreeMap::new();
        for worker in self.workers.values().filter(|worker| worker.beat_at >= alive_since) {
            let services: BTreeSet<&str> = worker.services.iter().map(String::as_str).collect();
            for service in services.into_iter().filter(|service| names.contains(service)) {
                let live = counts.entry(service).or_default();
                live.n_workers += 1;
                live.capacity += u64::try_from(worker.capacity).unwrap_or(0) * u64::from(!worker.is_draining);
                live.load += u64::try_from(worker.load).unwrap_or(0);
            }
        }
        let live = |(name, live): (&str, LiveService)| LiveService { name: name.to_owned(), ..live };
        Ok(counts.into_iter().take(names.limit()).map(live).collect())
    }

    pub(super) fn save_service(&mut self, row: ServiceRow) -> Result<(), StoreError> {
        if row.settings == ServiceSettings::default() {
            self.services.remove(&row.name);
        } else {
            self.services.insert(row.name.clone(), row);
        }
        Ok(())
    }
}
