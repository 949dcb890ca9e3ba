//! Weeks of simulated time across changes of the clock.

use super::*;

const DAY: u64 = 24 * HOUR;
/// How often a schedule is looked at, a little late each time.
const STEP: u64 = 5 * MINUTE;
const LATE: u64 = 30_000;

/// A daily schedule around a change of the clock, fired every few minutes for two weeks.
struct Change {
    zone: &'static str,
    cron: &'static str,
    /// The slot of the first of seven days before.
    before: &'static str,
    /// The slots of the day itself, by policy.
    shift: &'static [&'static str],
    skip: &'static [&'static str],
    twice: &'static [&'static str],
    /// The slot of the first of seven days after.
    after: &'static str,
}

const CHANGES: [Change; 6] = [
    Change {
        zone: "Europe/Berlin",
        cron: "30 2 * * *",
        before: "2086-03-24T01:30:00Z",
        shift: &["2086-03-31T01:00:00Z"],
        skip: &[],
        twice: &["2086-03-31T01:00:00Z"],
        after: "2086-04-01T00:30:00Z",
    },
    Change {
        zone: "Europe/Berlin",
        cron: "30 2 * * *",
        before: "2086-10-20T00:30:00Z",
        shift: &["2086-10-27T00:30:00Z"],
        skip: &["2086-10-27T00:30:00Z"],
        twice: &["2086-10-27T00:30:00Z", "2086-10-27T01:30:00Z"],
        after: "2086-10-28T01:30:00Z",
    },
    Change {
        zone: "America/New_York",
        cron: "30 2 * * *",
        before: "2086-03-03T07:30:00Z",
        shift: &["2086-03-10T07:00:00Z"],
        skip: &[],
        twice: &["2086-03-10T07:00:00Z"],
        after: "2086-03-11T06:30:00Z",
    },
    Change {
        zone: "America/New_York",
        cron: "30 1 * * *",
        before: "2086-10-27T05:30:00Z",
        shift: &["2086-11-03T05:30:00Z"],
        skip: &["2086-11-03T05:30:00Z"],
        twice: &["2086-11-03T05:30:00Z", "2086-11-03T06:30:00Z"],
        after: "2086-11-04T06:30:00Z",
    },
    // Half an hour forward: from two to half past.
    Change {
        zone: "Australia/Lord_Howe",
        cron: "15 2 * * *",
        before: "2086-09-28T15:45:00Z",
        shift: &["2086-10-05T15:30:00Z"],
        skip: &[],
        twice: &["2086-10-05T15:30:00Z"],
        after: "2086-10-06T15:15:00Z",
    },
    Change {
        zone: "Australia/Lord_Howe",
        cron: "45 1 * * *",
        before: "2086-03-30T14:45:00Z",
        shift: &["2086-04-06T14:45:00Z"],
        skip: &["2086-04-06T14:45:00Z"],
        twice: &["2086-04-06T14:45:00Z", "2086-04-06T15:15:00Z"],
        after: "2086-04-07T15:15:00Z",
    },
];

async fn passes(change: &Change, dst: Dst) {
    let day = match dst {
        Dst::Shift => change.shift,
        Dst::Skip => change.skip,
        Dst::Twice => change.twice,
    };
    let days = |first: Timestamp| (0..7).map(move |n| first.after(n * DAY));
    let expected: Vec<Timestamp> = days(at(change.before))
        .chain(day.iter().map(|text| at(text)))
        .chain(days(at(change.after)))
        .collect();
    let server = server().await;
    let draft = ScheduleDraft {
        cron_expr: change.cron.to_owned(),
        timezone: change.zone.to_owned(),
        dst,
        ..hourly()
    };
    let begin = Timestamp(expected[0].0 - 3_600_000);
    let id = server.schedule_from(draft, begin).await;
    let end = expected.last().unwrap().after(HOUR);
    let mut now = begin;
    while now < end {
        now = now.after(STEP);
        assert!(fire_at(&server, now.after(LATE)).await);
    }
    assert_eq!(server.fired_at(id, &expected).await, expected, "{} {dst:?}", change.zone);
    for (row, slot) in server.scheduled_jobs(id).await.iter().zip(&expected) {
        let late = row.job.created_at.since(*slot);
        assert!((LATE..LATE + MINUTE).contains(&late), "{slot} fired at {}", row.job.created_at);
    }
}

#[tokio::test]
async fn clocks_that_change_lose_no_slot_and_repeat_none() {
    for change in &CHANGES {
        for dst in [Dst::Shift, Dst::Skip, Dst::Twice] {
            passes(change, dst).await;
        }
    }
}

#[tokio::test]
async fn every_hour_is_an_hour_through_clock_changes() {
    for zone in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"] {
        for dst in [Dst::Shift, Dst::Skip, Dst::Twice] {
            let server = server().await;
            let begin = at("2086-10-01T00:10:00Z");
            let draft = ScheduleDraft {
                cron_expr: "30 * * * *".to_owned(),
                timezone: zone.to_owned(),
                dst,
                catchup: Catchup::All,
                ..hourly()
            };
            let id = server.schedule_from(draft, begin).await;
            for nth in 1..=10 {
                assert!(fire_at(&server, begin.after(nth * DAY)).await);
            }
            // Where the clock jumps by half an hour, half past the hour is on the hour from then on.
            let jump = at("2086-10-05T15:30:00Z");
            let slots: Vec<Timestamp> = (0..10 * 48)
                .map(|n| at("2086-10-01T00:30:00Z").after(n * 30 * MINUTE))
                .filter(|slot| {
                    let half_past = slot.0.rem_euclid(3_600_000) != 0;
                    half_past != (zone == "Australia/Lord_Howe" && *slot < jump)
                })
                .collect();
            assert_eq!(server.fired_at(id, &slots).await, slots, "{zone} {dst:?}");
        }
    }
}
