use std::collections::BTreeSet;

use proptest::prelude::*;
use uuid::Uuid;

use super::*;

const HOUR: i64 = 3_600_000;
const NONE: [i64; 0] = [];

fn hourly(overlap: Overlap, catchup: Catchup) -> Schedule {
    let cron = Cron::parse("0 * * * *", "UTC").unwrap();
    Schedule { id: ScheduleId::new(Uuid::from_u128(1)), cron, enabled: true, overlap, catchup, window_ms: 0 }
}

fn since(ms: i64) -> Progress {
    Progress { last_slot: Some(Timestamp(ms)), waiting: Vec::new() }
}

fn hours(decision: &Decision) -> Vec<i64> {
    decision.fire.iter().map(|firing| firing.slot.0 / HOUR).collect()
}

#[test]
fn a_new_schedule_waits_for_its_first_slot() {
    let decision = hourly(Overlap::Skip, Catchup::All).plan(&Progress::default(), Timestamp(HOUR + 5), 0);
    assert_eq!(decision.fire, []);
    assert_eq!(decision.next_at, Some(Timestamp(2 * HOUR)));
    assert_eq!(decision.progress, since(HOUR + 5));
}

#[test]
fn a_slot_on_time_fires_once() {
    let schedule = hourly(Overlap::Skip, Catchup::None);
    let first = schedule.plan(&since(HOUR), Timestamp(2 * HOUR + 40), 0);
    assert_eq!(hours(&first), [2]);
    assert_eq!(first.fire[0].to_string(), format!("{}@1970-01-01T02:00:00Z", schedule.id));
    assert_eq!(hours(&schedule.plan(&first.progress, Timestamp(2 * HOUR + 80), 0)), NONE);
    assert_eq!(hours(&schedule.plan(&first.progress, Timestamp(HOUR), 0)), NONE);
}

#[test]
fn slots_that_a_wrong_clock_decided_are_decided_again_at_their_time() {
    let schedule = hourly(Overlap::Queue, Catchup::None);
    let ahead = Progress { last_slot: Some(Timestamp(9 * HOUR)), waiting: vec![Timestamp(2 * HOUR)] };
    let back = schedule.plan(&ahead, Timestamp(HOUR + 5), 1);
    assert_eq!((hours(&back), back.next_at), (NONE.to_vec(), Some(Timestamp(2 * HOUR))));
    assert_eq!((back.progress.last_slot, back.n_passed), (Some(Timestamp(HOUR + 5)), 0));
    let due = schedule.plan(&back.progress, Timestamp(2 * HOUR + 5), 1);
    assert_eq!(due.progress.waiting, [Timestamp(2 * HOUR)], "a slot that waited is decided again, once");
    let little = since(HOUR + 30_000);
    let kept = schedule.plan(&little, Timestamp(HOUR), 0);
    assert_eq!(kept.progress, little, "clocks differ a little");
}

#[test]
fn missed_slots_follow_the_catch_up_rule() {
    let now = Timestamp(5 * HOUR + HOUR / 2);
    let plan = |catchup| hourly(Overlap::Allow, catchup).plan(&since(HOUR), now, 0);
    assert_eq!(hours(&plan(Catchup::None)), NONE);
    assert_eq!(plan(Catchup::None).n_passed, 4);
    assert_eq!(hours(&plan(Catchup::Last)), [5]);
    assert_eq!(plan(Catchup::Last).n_passed, 3);
    assert_eq!(hours(&plan(Catchup::All)), [2, 3, 4, 5]);
    assert_eq!(plan(Catchup::All).n_passed, 0);
}

#[test]
fn a_slot_on_time_stands_for_the_missed_ones() {
    let decision = hourly(Overlap::Allow, Catchup::Last).plan(&since(HOUR), Timestamp(5 * HOUR + 10), 0);
    assert_eq!(hours(&decision), [5]);
    assert_eq!(decision.n_passed, 3);
}

#[test]
fn the_window_bounds_how_late_a_slot_may_be() {
    let mut schedule = hourly(Overlap::Allow, Catchup::All);
    let late = Timestamp(100 * HOUR + HOUR / 2);
    assert_eq!(hours(&schedule.plan(&since(HOUR), late, 0)).len(), 24);
    schedule.window_ms = 2 * HOUR.unsigned_abs();
    assert_eq!(hours(&schedule.plan(&since(HOUR), late, 0)), [99, 100]);
    schedule.window_ms = u64::MAX;
    assert_eq!(hours(&schedule.plan(&since(HOUR), late, 0)).len(), 99);
}

#[test]
fn a_flood_is_bounded_and_found_quickly() {
    let mut schedule = hourly(Overlap::Allow, Catchup::All);
    schedule.cron = Cron::parse("* * * * * *", "Europe/Berlin").unwrap();
    schedule.window_ms = u64::MAX;
    let now = Timestamp(50 * 365 * 24 * HOUR);
    let decision = schedule.plan(&since(0), now, 0);
    assert_eq!(decision.fire.len(), FIRINGS_MAX);
    assert_eq!(decision.fire.last().unwrap().slot, now);
}

#[test]
fn skip_lets_slots_pass_while_something_runs() {
    let schedule = hourly(Overlap::Skip, Catchup::All);
    let busy = schedule.plan(&since(HOUR), Timestamp(2 * HOUR), 1);
    assert_eq!((hours(&busy), busy.n_passed), (vec![], 1));
    let idle = schedule.plan(&since(HOUR), Timestamp(4 * HOUR), 0);
    assert_eq!((hours(&idle), idle.n_passed), (vec![4], 2));
}

#[test]
fn queue_fires_one_after_another_and_loses_none() {
    let schedule = hourly(Overlap::Queue, Catchup::None);
    let busy = schedule.plan(&since(HOUR), Timestamp(2 * HOUR), 1);
    assert_eq!(hours(&busy), NONE);
    let busy = schedule.plan(&busy.progress, Timestamp(3 * HOUR), 1);
    assert_eq!(busy.progress.waiting, [Timestamp(2 * HOUR), Timestamp(3 * HOUR)]);
    let idle = schedule.plan(&busy.progress, Timestamp(3 * HOUR + HOUR / 2), 0);
    assert_eq!(hours(&idle), [2]);
    let idle = schedule.plan(&idle.progress, Timestamp(3 * HOUR + HOUR / 2), 0);
    assert_eq!(hours(&idle), [3]);
    assert_eq!(idle.progress.waiting, []);
}

#[test]
fn cancel_makes_room_for_the_latest() {
    let schedule = hourly(Overlap::Cancel, Catchup::All);
    let decision = schedule.plan(&since(HOUR), Timestamp(3 * HOUR), 2);
    assert!(decision.cancel_running);
    assert_eq!((hours(&decision), decision.n_passed), (vec![3], 1));
    assert!(!schedule.plan(&since(HOUR), Timestamp(HOUR + 1), 2).cancel_running);
    assert!(!schedule.plan(&since(HOUR), Timestamp(2 * HOUR), 0).cancel_running);
}

#[test]
fn a_disabled_schedule_lets_time_pass() {
    let mut schedule = hourly(Overlap::Skip, Catchup::All);
    schedule.enabled = false;
    let decision = schedule.plan(&since(HOUR), Timestamp(9 * HOUR), 0);
    assert_eq!((hours(&decision), decision.next_at), (vec![], None));
    schedule.enabled = true;
    assert_eq!(hours(&schedule.plan(&decision.progress, Timestamp(9 * HOUR + 5), 0)), NONE);
}

#[test]
fn a_person_can_always_start_one() {
    let mut schedule = hourly(Overlap::Cancel, Catchup::None);
    schedule.enabled = false;
    let (firing, cancel) = schedule.trigger(Timestamp(2 * HOUR), 1);
    assert!(cancel && firing.manual);
    let slot = Firing { manual: false, ..firing };
    assert_ne!(firing.to_string(), slot.to_string());
}

#[test]
fn a_firing_always_starts_the_same_and_no_other_starts_it() {
    let schedule = hourly(Overlap::Skip, Catchup::None).id;
    let other = ScheduleId::new(Uuid::from_u128(2));
    let firing = Firing { schedule, slot: Timestamp(HOUR), manual: false };
    assert_eq!(firing.job(), Firing { ..firing }.job());
    let others = [
        Firing { manual: true, ..firing },
        Firing { slot: Timestamp(HOUR + 1), ..firing },
        Firing { schedule: other, ..firing },
    ];
    let jobs: BTreeSet<_> = others.iter().chain([&firing]).map(Firing::job).collect();
    let runs: BTreeSet<_> = others.iter().chain([&firing]).map(Firing::run).collect();
    assert_eq!((jobs.len(), runs.len()), (4, 4));
    assert_ne!(firing.job().uuid(), firing.run().uuid());
    assert!(Firing { slot: Timestamp(2 * HOUR), ..firing }.job() > firing.job());
}

#[test]
fn an_interrupted_reader_continues_where_it_was() {
    let schedule = hourly(Overlap::Allow, Catchup::All);
    let before = Progress {
        last_slot: Some(Timestamp(3 * HOUR)),
        waiting: vec![Timestamp(HOUR), Timestamp(2 * HOUR)],
    };
    let now = Timestamp(5 * HOUR + 7);
    let whole = schedule.plan(&before, now, 0);
    assert_eq!(hours(&whole), [1, 2, 4, 5]);
    for n in 0..=whole.fire.len() {
        let (progress, next_at) = whole.after(&before, n);
        let rest = schedule.plan(&progress, now, 0);
        assert_eq!(rest.fire, whole.fire[n..], "after {n}");
        assert_eq!(rest.progress, whole.progress);
        assert_eq!(next_at.is_some_and(|at| at <= now), n < whole.fire.len());
    }
}

proptest! {
    #[test]
    fn no_slot_fires_early_or_twice_and_allow_with_all_fires_every_one(
        gaps in prop::collection::vec((0i64..4 * HOUR, 0usize..3, any::<bool>()), 1..40), overlap in 0usize..4,
    ) {
        let overlap = [Overlap::Skip, Overlap::Queue, Overlap::Cancel, Overlap::Allow][overlap];
        let schedule = hourly(overlap, Catchup::All);
        let (mut now, mut progress) = (10 * HOUR + 7, since(10 * HOUR + 7));
        let mut fired = BTreeSet::new();
        let mut waiting = 0;
        for (gap, n_running, back) in gaps {
            now = if back { (now - gap / 4).max(10 * HOUR + 7) } else { now + gap };
            if progress.is_ahead_of(Timestamp(now)) {
                // Slots that are still to come are decided again; the store knows those that fired.
                fired.retain(|firing: &Firing| firing.slot.0 <= now);
            }
            let decision = schedule.plan(&progress, Timestamp(now), n_running);
            for firing in &decision.fire {
                prop_assert!(fired.insert(*firing), "{firing} fired twice");
                prop_assert!(firing.slot.0 <= now, "{firing} fired before its time");
                prop_assert!(Some(firing.slot) <= decision.progress.last_slot);
            }
            waiting = decision.progress.waiting.len();
            progress = decision.progress;
        }
        let (end, start) = (progress.last_slot.unwrap().0 / HOUR, 10);
        if matches!(overlap, Overlap::Allow | Overlap::Queue) {
            prop_assert_eq!(i64::try_from(fired.len() + waiting).unwrap(), end - start);
        }
    }
}
