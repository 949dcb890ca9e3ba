//! API keys.

use std::ops::Bound;

use async_trait::async_trait;
use windlass_engine::access::api_key::ApiKeyId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::Memory;
use super::state::MemoryState;
use crate::api_key::{ApiKeyRow, ApiKeyStore};
use crate::error::StoreError;

impl MemoryState {
    fn api_key_of(&mut self, project: &Project, id: ApiKeyId) -> Option<&mut ApiKeyRow> {
        self.api_keys.get_mut(&id).filter(|row| row.project == *project)
    }

    fn create_api_key(&mut self, project: &Project, row: ApiKeyRow) -> bool {
        let is_new = !self.api_keys.contains_key(&row.id);
        if is_new {
            self.api_keys.insert(row.id, ApiKeyRow { project: project.clone(), ..row });
        }
        is_new
    }

    fn rotate_api_key(
        &mut self,
        project: &Project,
        id: ApiKeyId,
        ends_at: Timestamp,
        successor: ApiKeyRow,
    ) -> bool {
        if self.api_keys.contains_key(&successor.id) {
            return false;
        }
        let Some(row) = self.api_key_of(project, id).filter(|row| row.term.revoked_at.is_none()) else {
            return false;
        };
        row.term.expires_at = Some(row.term.expires_at.map_or(ends_at, |at| at.min(ends_at)));
        self.create_api_key(project, successor)
    }
}

#[async_trait]
impl ApiKeyStore for Memory {
    async fn create_api_key(&self, project: &Project, row: ApiKeyRow) -> Result<bool, StoreError> {
        let is_new = self.state().create_api_key(project, row);
        self.tell_of_settings();
        Ok(is_new)
    }

    async fn api_key(&self, id: ApiKeyId) -> Result<Option<ApiKeyRow>, StoreError> {
        Ok(self.state().api_keys.get(&id).cloned())
    }

    async fn api_keys(
        &self,
        project: &Project,
        after: Option<ApiKeyId>,
        limit: usize,
    ) -> Result<Vec<ApiKeyRow>, StoreError> {
        let state = self.state();
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = state.api_keys.range((after, Bound::Unbounded)).map(|(_, row)| row);
        Ok(rows.filter(|row| row.project == *project).take(limit).cloned().collect())
    }

    async fn has_api_keys(&self) -> Result<bool, StoreError> {
        Ok(!self.state().api_keys.is_empty())
    }

    async fn revoke_api_key(
        &self,
        project: &Project,
        id: ApiKeyId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let is_there = self.state().api_key_of(project, id).is_some_and(|row| {
            row.term.revoked_at.get_or_insert(now);
            true
        });
        self.tell_of_settings();
        Ok(is_there)
    }

    async fn rotate_api_key(
        &self,
        project: &Project,
        id: ApiKeyId,
        ends_at: Timestamp,
        successor: ApiKeyRow,
    ) -> Result<bool, StoreError> {
        let is_there = self.state().rotate_api_key(project, id, ends_at, successor);
        self.tell_of_settings();
        Ok(is_there)
    }

    async fn save_api_key_uses(&self, uses: Vec<(ApiKeyId, Timestamp)>) -> Result<(), StoreError> {
        let mut state = self.state();
        for (id, at) in uses {
            if let Some(row) = state.api_keys.get_mut(&id) {
                row.used_at = row.used_at.max(Some(at));
            }
        }
        Ok(())
    }
}
