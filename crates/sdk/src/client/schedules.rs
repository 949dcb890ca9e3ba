//! Schedules: creating, changing, listing and triggering them.

use std::time::Duration;

use reqwest::Method;

use super::{Client, Repeat, with_query};
use crate::contract::{
    NewSchedule, NextQuery, NextRuns, NoBody, ScheduleDeleted, ScheduleInfo, SchedulePatch,
    SchedulePreviewRequest, Schedules, Toggle, Triggered,
};
use crate::error::ClientError;

impl Client {
    /// Makes a schedule.
    pub async fn create_schedule(&self, schedule: &NewSchedule) -> Result<ScheduleInfo, ClientError> {
        self.post(self.native(&["schedules"]), schedule, Repeat::Never).await
    }

    /// All schedules, oldest first.
    pub async fn schedules(&self) -> Result<Schedules, ClientError> {
        self.get(self.native(&["schedules"])).await
    }

    /// One schedule.
    pub async fn schedule(&self, id: &str) -> Result<ScheduleInfo, ClientError> {
        self.get(self.native(&["schedules", id])).await
    }

    /// Changes a schedule; absent fields keep their values.
    pub async fn change_schedule(
        &self,
        id: &str,
        change: &SchedulePatch,
    ) -> Result<ScheduleInfo, ClientError> {
        let url = self.native(&["schedules", id]);
        self.call(Method::PATCH, url, Some(change), Duration::ZERO, Repeat::Harmless).await
    }

    /// Deletes a schedule; its open jobs and runs go on.
    pub async fn delete_schedule(&self, id: &str) -> Result<(), ClientError> {
        let url = self.native(&["schedules", id]);
        let deleted =
            self.call::<(), ScheduleDeleted>(Method::DELETE, url, None, Duration::ZERO, Repeat::Never);
        deleted.await.map(drop)
    }

    /// Turns a schedule on or off; `None` = the other way round.
    pub async fn toggle_schedule(
        &self,
        id: &str,
        enabled: Option<bool>,
    ) -> Result<ScheduleInfo, ClientError> {
        let repeat = if enabled.is_some() { Repeat::Harmless } else { Repeat::Never };
        self.post(self.native(&["schedules", id, "toggle"]), &Toggle { enabled }, repeat).await
    }

    /// Starts the target of a schedule now.
    pub async fn trigger_schedule(&self, id: &str) -> Result<Triggered, ClientError> {
        self.post(self.native(&["schedules", id, "trigger"]), &NoBody {}, Repeat::Never).await
    }

    /// When a schedule is due next, whether or not it is enabled.
    pub async fn next_runs(&self, id: &str, count: Option<usize>) -> Result<NextRuns, ClientError> {
        self.get(with_query(self.native(&["schedules", id, "next"]), &NextQuery { count })).await
    }

    /// When a cron expression would be due.
    pub async fn preview_schedule(&self, preview: &SchedulePreviewRequest) -> Result<NextRuns, ClientError> {
        self.post(self.native(&["schedules", "preview"]), preview, Repeat::Harmless).await
    }
}
