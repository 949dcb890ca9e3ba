//! The conformance suite: one function for each rule, over `&dyn Store`, named for the sentence that it proves.
//!
//! A backend calls `windlass_conformance::conformance!(make_store)` in its tests, where `make_store` is an async
//! function that returns an empty store, or a value that holds one (`AsRef<dyn Store>`).

pub mod accounts;
pub mod api_keys;
pub mod blobs;
pub mod bulks;
pub mod children;
pub mod commits;
pub mod dead_letters;
pub mod flows;
pub mod isolation;
pub mod jobs;
pub mod keys;
pub mod lists;
pub mod names;
pub mod outboxes;
pub mod projects;
pub mod queues;
pub mod records;
pub mod replays;
pub mod retention;
pub mod rounds;
pub mod runs;
pub mod schedules;
pub mod set_back;
pub mod trees;

/// Makes a test of every function of the suite. The second argument runs a future to its end; the default
/// blocks the thread.
#[macro_export]
macro_rules! conformance {
    ($make:path) => {
        $crate::conformance!($make, $crate::block_on);
    };
    ($make:path, $run:path) => {
        $crate::conformance_tests! { $make, $run,
            flows: [
                a_flow_and_its_first_version_are_published_at_once
                a_taken_name_is_refused_and_nothing_is_written
                a_taken_name_makes_another_flow_where_that_is_allowed
                publishing_again_under_the_same_ids_writes_nothing
                versions_are_numbered_in_order_and_listed_newest_first
                a_taken_number_is_refused
                the_latest_version_is_the_latest_published_one
                a_version_of_an_unknown_flow_is_refused
                a_definition_comes_back_as_it_was_written
                flows_are_found_by_text_label_and_kind
            ]
            isolation: [
                rows_of_another_project_are_not_seen
                names_are_unique_in_their_project_only
                settings_of_another_project_are_not_changed
                a_commit_of_another_project_finds_nothing_to_change
                wake_ups_and_messages_name_their_projects
                a_group_may_hold_commits_of_several_projects
                retention_deletes_in_every_project
            ]
            projects: [
                rows_of_another_project_are_unknown
                jobs_and_queues_of_another_project_are_unknown
                money_of_another_project_is_unknown
                a_commit_changes_no_row_of_another_project
                two_projects_use_the_same_names
            ]
            commits: [
                an_entry_a_row_a_job_and_money_are_written_together
                a_commit_with_an_old_length_is_refused_and_writes_nothing
                a_commit_from_the_future_is_refused
                one_commits_conflict_does_not_spoil_its_group
                commits_of_a_group_see_those_before_them
                the_same_command_twice_is_one_commit
                the_same_command_twice_in_one_group_is_one_commit
                an_unknown_outcome_is_looked_up_by_its_command
                a_refused_command_leaves_no_trace_and_may_be_tried_again
                a_short_balance_writes_nothing
                a_lost_job_race_writes_nothing
                a_commit_that_contradicts_itself_is_refused
                an_empty_group_is_answered_with_nothing
                one_of_many_concurrent_entries_wins
            ]
            runs: [
                a_run_is_created_once_per_request_id
                another_request_under_the_same_id_is_told_apart
                a_run_of_an_unknown_version_is_refused
                the_journal_is_dense_and_comes_in_parts
                the_journal_of_an_unknown_run_is_empty
                a_snapshot_saves_reading_earlier_entries
                the_origin_of_a_run_never_changes
                due_runs_come_oldest_first_and_only_open_ones
                a_wake_up_that_was_moved_is_due_only_then
                runs_of_a_dead_server_are_orphans
                runs_of_an_earlier_epoch_are_orphans
                runs_that_ended_or_have_no_owner_are_no_orphans
                orphans_are_walked_through_by_id
                rows_that_become_due_later_are_found_with_their_times
            ]
            lists: [
                runs_are_found_by_every_field
                open_runs_are_found_by_owner_and_progress
                text_finds_ids_requests_labels_and_errors
                cursors_page_through_everything_once
                runs_of_the_same_moment_are_paged_through_once
                lists_are_ordered_as_asked
                open_and_ended_runs_are_ordered_by_their_latest_change
                pages_can_be_numbered_and_counted
                a_cursor_of_another_list_is_refused
                jobs_are_found_by_every_field
                jobs_page_through_everything_once
                tests_narrow_a_list_by_every_condition
                runs_are_counted_up_to_a_limit_where_an_index_answers
            ]
            jobs: [
                a_job_reads_back_as_it_was_written
                an_outline_has_the_beginning_of_a_large_payload
                outlines_are_the_nearest_delayed_jobs_and_the_newest_dead_letters
                a_job_change_needs_the_right_revision
                an_active_key_makes_a_duplicate
                a_key_is_free_again_when_its_job_has_ended
                a_key_can_stay_taken_for_a_while
                the_same_key_in_another_queue_is_another_key
                two_jobs_of_one_commit_cannot_share_a_key
                all_duplicates_of_a_commit_are_told_at_once
                a_replayed_job_takes_its_key_back_only_if_it_is_free
                hundred_concurrent_creates_with_one_dedup_key_make_one_job
                ready_jobs_come_by_priority_then_due_time_then_id
                ready_jobs_match_by_queue_or_by_service
                jobs_of_runs_are_found_behind_any_number_of_plain_ones
                a_job_is_not_ready_before_its_time
                a_claimed_job_is_not_ready
                one_of_two_claims_wins
                a_paused_queue_hands_out_nothing
                overdue_leases_and_waits_are_found_oldest_first
                attempts_are_kept_longer_than_the_job_remembers
                depths_count_open_jobs_and_dead_letters
            ]
            keys: [
                ready_jobs_are_found_portion_by_portion
                a_key_with_many_jobs_hides_no_other_key
                a_query_for_too_many_keys_continues_after_the_last_one
                only_jobs_that_can_be_claimed_are_found_by_key
                ready_jobs_match_by_queue_and_service_together
                ready_jobs_are_found_by_their_ids
                jobs_that_workers_hold_are_found_by_queue
                a_turn_at_a_queue_is_had_once
                a_spent_rate_is_kept_until_it_is_full_again
            ]
            dead_letters: [
                dead_letters_are_grouped_by_their_fault
                replayed_and_discarded_dead_letters_leave_their_group
                dead_letters_of_a_group_come_in_order_of_creation
                jobs_are_found_by_their_worker
            ]
            queues: [
                depths_follow_every_change_of_jobs
                a_queue_with_nothing_in_it_is_not_counted
            ]
            accounts: [
                a_balance_is_the_sum_of_its_ledger
                a_movement_is_made_once
                a_charge_is_closed_once
                every_charge_that_does_not_fit_is_named
                an_unknown_account_is_refused
                a_movement_that_makes_no_sense_is_refused
                concurrent_charges_never_overdraw
                a_commit_that_relied_on_a_moved_account_is_a_conflict
                opening_an_account_again_keeps_its_money
                a_long_ledger_is_read_a_page_at_a_time
                the_ledger_comes_in_parts_and_by_run
                runs_that_wait_for_money_are_found_by_the_amount_they_need
            ]
            outboxes: [
                a_message_is_sent_with_the_commit_of_its_sender
                the_same_message_twice_is_one_message
                a_message_is_delivered_once
                a_delivered_message_is_not_sent_again
                a_message_is_not_delivered_before_its_time
                an_unknown_message_cannot_be_delivered
                a_refused_commit_delivers_nothing
                messages_with_one_number_differ_by_their_part
                undelivered_messages_are_found_by_their_receiver
            ]
            children: [
                a_child_run_tells_its_parent_once
                a_call_of_a_flow_waits_in_the_outbox_until_its_child_is_created
                cancelling_a_run_leaves_a_message_for_each_of_its_children
            ]
            trees: [
                a_run_remembers_the_tree_it_belongs_to
                runs_are_counted_by_tree_by_flow_and_together
                waiting_child_runs_are_read_by_tree_the_deepest_first
                trees_with_waiting_child_runs_are_read_in_pages
                undelivered_messages_are_read_in_pages
            ]
            schedules: [
                a_slot_fires_once
                a_manual_firing_is_not_a_slot
                a_firing_is_deleted_with_the_job_it_started
                a_schedule_change_needs_the_right_revision
                due_schedules_come_oldest_first_with_their_open_runs_and_jobs
                a_deleted_schedule_is_gone_and_its_slots_stay_fired
                a_firing_of_an_unknown_schedule_is_refused
            ]
            set_back: [
                stored_times_that_are_ahead_are_set_back
            ]
            bulks: [
                a_bulk_action_keeps_its_targets_and_its_progress
                bulk_actions_are_listed_and_forgotten
                bulk_actions_of_another_project_are_not_seen
                samples_are_replaced_read_by_time_and_forgotten
            ]
            api_keys: [
                a_key_is_found_by_its_id_and_listed_in_its_project
                the_id_of_a_key_is_taken_once
                a_key_is_revoked_once_and_in_its_own_project
                a_rotated_key_ends_when_its_successor_begins
                last_uses_of_keys_only_grow
            ]
            records: [
                servers_beat_and_an_old_epoch_is_refused
                a_key_of_the_store_is_made_once
                servers_not_heard_of_for_long_are_forgotten
                workers_register_beat_and_are_found
                an_unknown_worker_is_told_to_register
                a_worker_drains_until_it_registers_again
                workers_not_heard_of_for_long_are_forgotten
                prices_and_queue_settings_are_replaced
                settings_of_services_are_replaced_and_removed
                the_audit_is_numbered_in_order
                each_line_of_the_audit_has_the_hash_of_the_line_before
                the_audit_is_read_in_both_orders_and_by_user_action_and_subject
                a_log_is_written_with_its_commit_or_not_at_all
                logs_of_a_run_come_by_entry_and_those_of_unknown_runs_are_not_kept
                more_logs_than_are_read_at_once_are_read_in_parts
            ]
            names: [
                queues_are_listed_a_page_at_a_time
                workers_are_listed_a_page_at_a_time
                workers_of_a_service_are_listed_without_the_rest
                services_are_listed_a_page_at_a_time
                supply_is_added_up_by_service
                waiting_jobs_are_counted_by_service
                schedules_are_listed_a_page_at_a_time
                a_worker_that_registers_again_changes_its_services
                empty_queues_without_settings_are_deleted
                a_rare_match_is_found_by_following_the_pages
            ]
            retention: [
                rows_that_ended_long_ago_are_deleted_a_part_at_a_time
                open_runs_and_recent_ones_stay
                dead_letters_the_ledger_and_the_audit_stay
                a_run_is_kept_until_its_messages_are_delivered
                a_deleted_run_frees_its_request_id
                logs_are_deleted_with_their_run
            ]
            blobs: [
                jobs_refer_to_large_params_and_share_them
                a_start_with_large_params_reads_as_it_was_written
                children_refer_to_the_params_of_their_parent
                a_blob_is_deleted_with_the_last_run_that_refers_to_it
                a_blob_is_kept_for_a_child_that_is_yet_to_be_created_and_no_longer
            ]
            replays: [
                a_run_replays_from_its_journal
                a_run_replays_from_a_snapshot
                a_call_through_the_queue_makes_a_job_that_can_be_claimed
                an_answer_ends_the_job_and_moves_the_run_in_one_commit
                a_cancelled_run_cancels_its_jobs
                a_priced_call_is_charged_and_settled_with_its_run
                a_short_balance_fails_the_call_or_parks_it
                a_deposit_after_the_read_undoes_the_parking
                a_run_has_an_owner_only_while_a_server_makes_a_call
                a_run_that_waits_says_so_and_wakes
                two_servers_on_one_run_agree
                a_wide_fan_is_followed_to_its_end
            ]
            rounds: [
                a_rerun_resets_the_nodes_that_follow
                a_retry_continues_at_the_failed_nodes
                nodes_write_while_their_runs_are_open
            ]
        }
    };
}

/// Expands the list of [`conformance!`].
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ($make:path, $run:path, $($module:ident: [$($name:ident)*])*) => {
        $(
            mod $module {
                #[allow(unused_imports, reason = "paths of the caller may be relative to its module")]
                use super::*;
                $(
                    #[test]
                    fn $name() {
                        $run(async {
                            let held = $make().await;
                            let store: &dyn ::windlass_store::Store = ::std::convert::AsRef::as_ref(&held);
                            $crate::suite::$module::$name(store).await;
                        });
                    }
                )*
            }
        )*
    };
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// A suite function that is not listed would prove nothing.
    #[test]
    fn every_function_of_the_suite_is_listed() {
        let list = include_str!("suite.rs");
        let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/suite")).unwrap();
        let mut n_functions = 0;
        for file in files {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            let names = text.lines().filter_map(|line| line.strip_prefix("pub async fn ")?.split('(').next());
            for name in names {
                assert!(list.lines().any(|line| line.trim() == name), "`{name}` is not listed");
                n_functions += 1;
            }
        }
        assert!(n_functions >= 160, "{n_functions}");
    }
}
