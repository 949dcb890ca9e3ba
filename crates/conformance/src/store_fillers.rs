//! Functions of the suite whose commits together leave a row in every table: tests of copies and views fill stores with
//! them.

use std::path::Path;
use std::pin::Pin;

use windlass_store::{Durability, Sqlite, Store};

use crate::suite::{
    accounts, api_keys, blobs, bulks, children, dead_letters, flows, jobs, keys, outboxes, queues, records,
    replays, rounds, runs, schedules,
};

type Fill = for<'s> fn(&'s dyn Store) -> Pin<Box<dyn Future<Output = ()> + 's>>;

/// One function of the suite.
#[derive(Clone, Copy)]
pub struct StoreFiller {
    pub name: &'static str,
    fill: Fill,
}

impl StoreFiller {
    /// Runs the function on an empty store, which keeps the rows.
    pub async fn fill(&self, store: &dyn Store) {
        (self.fill)(store).await;
    }

    /// Runs the function on a new SQLite file.
    pub async fn fill_file(&self, path: &Path) {
        self.fill(&Sqlite::open(path, Durability::Fast).unwrap()).await;
    }
}

macro_rules! fillers {
    ($($module:ident::$name:ident)*) => {
        [$(StoreFiller { name: stringify!($name), fill: |store| Box::pin($module::$name(store)) }),*]
    };
}

/// All fillers.
pub fn store_fillers() -> impl Iterator<Item = StoreFiller> {
    fillers! {
        flows::flows_are_found_by_text_label_and_kind
        flows::a_definition_comes_back_as_it_was_written
        runs::a_snapshot_saves_reading_earlier_entries
        runs::runs_of_a_dead_server_are_orphans
        replays::an_answer_ends_the_job_and_moves_the_run_in_one_commit
        replays::a_run_has_an_owner_only_while_a_server_makes_a_call
        replays::a_priced_call_is_charged_and_settled_with_its_run
        replays::a_short_balance_fails_the_call_or_parks_it
        replays::a_wide_fan_is_followed_to_its_end
        rounds::a_rerun_resets_the_nodes_that_follow
        rounds::a_retry_continues_at_the_failed_nodes
        rounds::nodes_write_while_their_runs_are_open
        blobs::jobs_refer_to_large_params_and_share_them
        blobs::children_refer_to_the_params_of_their_parent
        children::cancelling_a_run_leaves_a_message_for_each_of_its_children
        jobs::a_job_reads_back_as_it_was_written
        jobs::a_key_can_stay_taken_for_a_while
        jobs::attempts_are_kept_longer_than_the_job_remembers
        keys::a_spent_rate_is_kept_until_it_is_full_again
        keys::jobs_that_workers_hold_are_found_by_queue
        dead_letters::dead_letters_are_grouped_by_their_fault
        queues::depths_follow_every_change_of_jobs
        accounts::a_charge_is_closed_once
        outboxes::a_message_is_not_delivered_before_its_time
        schedules::a_manual_firing_is_not_a_slot
        bulks::a_bulk_action_keeps_its_targets_and_its_progress
        bulks::samples_are_replaced_read_by_time_and_forgotten
        api_keys::a_key_is_revoked_once_and_in_its_own_project
        records::workers_register_beat_and_are_found
        records::a_key_of_the_store_is_made_once
        records::prices_and_queue_settings_are_replaced
        records::settings_of_services_are_replaced_and_removed
        records::the_audit_is_numbered_in_order
        records::each_line_of_the_audit_has_the_hash_of_the_line_before
        records::more_logs_than_are_read_at_once_are_read_in_parts
    }
    .into_iter()
}
