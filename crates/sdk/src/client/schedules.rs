//! Schedules: creating, changing, listing and triggering them.

use std::time::Duration;

use reqwest::Method;

use super::{Client, Repeat, follow, with_query};
use crate::contract::{
    NewSchedule, NextQuery, NextRuns, NoBody, PageQuery, ScheduleDeleted, ScheduleInfo, SchedulePatch,
    SchedulePreviewRequest, Schedules, Toggle, Triggered,
};
use crate::error::ClientError;

/// Schedules of one server, from [`Client::schedules`].
#[derive(Debug, Clone, Copy)]
pub struct SchedulesApi<'c> {
    client: &'c Client,
}

impl Client {
    /// Creates, reads and changes schedules.
    pub fn schedules(&self) -> SchedulesApi<'_> {
        SchedulesApi { client: self }
    }
}

impl SchedulesApi<'_> {
    /// Makes a schedule.
    pub async fn create(self, schedule: &NewSchedule) -> Result<ScheduleInfo, ClientError> {
        self.client.post(self.client.native(&["schedules"]), schedule, Repeat::Never).await
    }

    /// A page of schedules, oldest first.
    pub async fn list(self, page: &PageQuery) -> Result<Schedules, ClientError> {
        self.client.get(with_query(self.client.native(&["schedules"]), page)).await
    }

    /// All pages of [`SchedulesApi::list`].
    pub async fn all(self) -> Result<Vec<ScheduleInfo>, ClientError> {
        follow(|page| async move { self.list(&page).await.map(|page| (page.schedules, page.next)) }).await
    }

    /// One schedule.
    pub async fn show(self, id: &str) -> Result<ScheduleInfo, ClientError> {
        self.client.get(self.client.native(&["schedules", id])).await
    }

    /// Changes a schedule; absent fields keep their values.
    pub async fn edit(self, id: &str, change: &SchedulePatch) -> Result<ScheduleInfo, ClientError> {
        let url = self.client.native(&["schedules", id]);
        self.client.call(Method::PATCH, url, Some(change), Duration::ZERO, Repeat::Harmless).await
    }

    /// Deletes a schedule; its open jobs and runs go on.
    pub async fn delete(self, id: &str) -> Result<(), ClientError> {
        let url = self.client.native(&["schedules", id]);
        let deleted =
            self.client.call::<(), ScheduleDeleted>(Method::DELETE, url, None, Duration::ZERO, Repeat::Never);
        deleted.await.map(drop)
    }

    /// Turns a schedule on or off; `None` = the other way round.
    pub async fn toggle(self, id: &str, enabled: Option<bool>) -> Result<ScheduleInfo, ClientError> {
        let repeat = if enabled.is_some() { Repeat::Harmless } else { Repeat::Never };
        self.client.post(self.client.native(&["schedules", id, "toggle"]), &Toggle { enabled }, repeat).await
    }

    /// Starts the target of a schedule now.
    pub async fn trigger(self, id: &str) -> Result<Triggered, ClientError> {
        self.client.post(self.client.native(&["schedules", id, "trigger"]), &NoBody {}, Repeat::Never).await
    }

    /// When a schedule is due next, whether or not it is enabled.
    pub async fn next(self, id: &str, count: Option<usize>) -> Result<NextRuns, ClientError> {
        self.client
            .get(with_query(self.client.native(&["schedules", id, "next"]), &NextQuery { count }))
            .await
    }

    /// When a cron expression would be due.
    pub async fn preview(self, preview: &SchedulePreviewRequest) -> Result<NextRuns, ClientError> {
        self.client.post(self.client.native(&["schedules", "preview"]), preview, Repeat::Harmless).await
    }
}
