use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

/// Slots after `after` as local wall clock with offset, `day hour:minute:second±offset`.
fn slots(expr: &str, zone: &str, dst: Dst, after: &str, n: usize) -> Vec<String> {
    let cron = Cron::parse(expr, zone).unwrap().with_dst(dst);
    let tz = TimeZone::get(zone).unwrap();
    let show = |slot: Timestamp| slot.to_jiff().to_zoned(tz.clone()).strftime("%d %H:%M%:z").to_string();
    cron.upcoming(at(after), n).into_iter().map(show).collect()
}

#[test]
fn five_fields_and_six_are_read() {
    let next = |expr: &str| Cron::parse(expr, "UTC").unwrap().next_after(at("2026-01-01T00:00:00Z")).unwrap();
    assert_eq!(next("*/15 * * * *"), at("2026-01-01T00:15:00Z"));
    assert_eq!(next("30 0 9 * * *"), at("2026-01-01T09:00:30Z"));
    assert_eq!(next("0 9 * * MON-FRI"), at("2026-01-01T09:00:00Z"));
    assert_eq!(next("@daily"), at("2026-01-02T00:00:00Z"));
    assert_eq!(next("0 0 L * *"), at("2026-01-31T00:00:00Z"));
    assert_eq!(next("0 0 29 2 *"), at("2028-02-29T00:00:00Z"));
    assert_eq!(next("0 0 * * 7"), next("0 0 * * 0"));
}

#[test]
fn a_slot_is_strictly_after_the_given_moment() {
    let cron = Cron::parse("* * * * * *", "UTC").unwrap();
    assert_eq!(cron.next_after(Timestamp(1_000)), Some(Timestamp(2_000)));
    assert_eq!(cron.next_after(Timestamp(999)), Some(Timestamp(1_000)));
    assert_eq!(cron.next_after(Timestamp(-1)), Some(Timestamp(0)));
}

#[test]
fn nonsense_is_refused_with_its_place() {
    for expr in
        ["", "* * * *", "* * * * * * *", "61 * * * *", "a b c d e", "@never", "*/0 * * * *", "5-1 * * * *"]
    {
        assert_eq!(Cron::parse(expr, "UTC").unwrap_err().path, "$.cron_expr", "{expr}");
    }
    let problem = Cron::parse("61 * 40 * *", "UTC").unwrap_err();
    assert!(problem.reason.contains("`61` is no minute (allowed: 0-59)"), "{problem}");
    assert!(problem.reason.contains("`40` is no day of the month (allowed: 1-31"), "{problem}");
    assert!(!problem.reason.contains("`*`"), "{problem}");
    let problem = Cron::parse("* * * * *", "Mars/Olympus").unwrap_err();
    assert_eq!(problem.path, "$.timezone");
    assert!(problem.reason.contains("Mars/Olympus"));
    assert_eq!(Cron::parse("* * * * *", "").unwrap().zone(), "UTC");
}

#[test]
fn unknown_nicknames_get_a_hint() {
    for (expr, wanted) in [
        ("@nightly", "`@daily`"),
        ("@dayly", "`@daily`"),
        ("@minutely", "`* * * * *`"),
        ("@reboot", "`windlass run start`"),
        ("@whenever", "@hourly, @daily, @weekly, @monthly, @yearly"),
    ] {
        let problem = Cron::parse(expr, "UTC").unwrap_err();
        assert!(problem.reason.contains(expr), "{problem}");
        assert!(problem.hint.as_ref().is_some_and(|hint| hint.contains(wanted)), "{problem}");
    }
}

#[test]
fn a_date_that_never_comes_is_refused() {
    for expr in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 0 31 2 *"] {
        let problem = Cron::parse(expr, "Europe/Berlin").unwrap_err();
        assert!(problem.reason.contains("never due"), "{problem}");
    }
}

#[test]
fn a_fixed_time_in_the_gap_is_shifted_or_skipped() {
    // Berlin, 29 March 2026: 02:00 becomes 03:00.
    let go = |dst| slots("30 2 * * *", "Europe/Berlin", dst, "2026-03-27T12:00:00Z", 3);
    assert_eq!(go(Dst::Shift), ["28 02:30+01:00", "29 03:00+02:00", "30 02:30+02:00"]);
    assert_eq!(go(Dst::Twice), go(Dst::Shift));
    assert_eq!(go(Dst::Skip), ["28 02:30+01:00", "30 02:30+02:00", "31 02:30+02:00"]);
    // New York, 14 March 2027: the same at 02:00.
    let go = |dst| slots("0 15 2 * * *", "America/New_York", dst, "2027-03-13T12:00:00Z", 2);
    assert_eq!(go(Dst::Shift), ["14 03:00-04:00", "15 02:15-04:00"]);
    assert_eq!(go(Dst::Skip), ["15 02:15-04:00", "16 02:15-04:00"]);
}

#[test]
fn a_search_that_starts_in_the_last_second_before_the_gap_finds_the_shifted_slot() {
    // 01:00 UTC is where 02:00 becomes 03:00.
    let go = |dst, after| slots("30 2 * * *", "Europe/Berlin", dst, after, 1);
    for after in ["2026-03-29T00:59:59Z", "2026-03-29T00:59:59.001Z", "2026-03-29T00:59:59.999Z"] {
        assert_eq!(go(Dst::Shift, after), ["29 03:00+02:00"], "{after}");
        assert_eq!(go(Dst::Skip, after), ["30 02:30+02:00"], "{after}");
    }
    assert_eq!(go(Dst::Shift, "2026-03-29T01:00:00Z"), ["30 02:30+02:00"], "it has fired");
}

#[test]
fn several_slots_in_one_gap_fire_once() {
    let go = slots("*/20 2-3 * * *", "Europe/Berlin", Dst::Shift, "2026-03-28T20:00:00Z", 4);
    assert_eq!(go, ["29 03:00+02:00", "29 03:20+02:00", "29 03:40+02:00", "30 02:00+02:00"]);
}

#[test]
fn a_fixed_time_in_the_overlap_fires_once_or_twice() {
    // Berlin, 25 October 2026: 03:00 becomes 02:00.
    let go = |dst| slots("30 2 * * *", "Europe/Berlin", dst, "2026-10-24T12:00:00Z", 3);
    assert_eq!(go(Dst::Shift), ["25 02:30+02:00", "26 02:30+01:00", "27 02:30+01:00"]);
    assert_eq!(go(Dst::Skip), go(Dst::Shift));
    assert_eq!(go(Dst::Twice), ["25 02:30+02:00", "25 02:30+01:00", "26 02:30+01:00"]);
    // New York, 7 November 2027: 02:00 becomes 01:00.
    let go = |dst| slots("0 1 * * *", "America/New_York", dst, "2027-11-06T12:00:00Z", 2);
    assert_eq!(go(Dst::Shift), ["07 01:00-04:00", "08 01:00-05:00"]);
    assert_eq!(go(Dst::Twice), ["07 01:00-04:00", "07 01:00-05:00"]);
}

#[test]
fn a_search_that_starts_within_the_overlap_keeps_to_the_rule() {
    // 00:45 UTC is 02:45 before the change; 01:15 UTC is 02:15 after it.
    for start in ["2026-10-25T00:45:00Z", "2026-10-25T01:15:00Z"] {
        assert_eq!(slots("30 2 * * *", "Europe/Berlin", Dst::Shift, start, 1), ["26 02:30+01:00"]);
        assert_eq!(slots("30 2 * * *", "Europe/Berlin", Dst::Twice, start, 1), ["25 02:30+01:00"]);
    }
}

#[test]
fn every_ten_minutes_is_every_ten_real_minutes() {
    for dst in [Dst::Shift, Dst::Skip, Dst::Twice] {
        for zone in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Shanghai"] {
            let cron = Cron::parse("*/10 * * * *", zone).unwrap().with_dst(dst);
            for start in [
                "2026-03-28T20:00:00Z",
                "2026-10-24T20:00:00Z",
                "2027-03-13T20:00:00Z",
                "2026-04-04T08:00:00Z",
            ] {
                let slots = cron.upcoming(at(start), 200);
                assert!(
                    slots.windows(2).all(|pair| pair[1].since(pair[0]) == 600_000),
                    "{zone} {start} {dst:?}"
                );
            }
        }
    }
}

#[test]
fn a_pattern_for_every_hour_gets_no_extra_slot_at_the_gap() {
    let go = slots("5,35 * * * *", "Europe/Berlin", Dst::Shift, "2026-03-29T00:10:00Z", 3);
    assert_eq!(go, ["29 01:35+01:00", "29 03:05+02:00", "29 03:35+02:00"]);
}

#[test]
fn half_an_hour_of_daylight_saving_is_respected() {
    // Lord Howe, 4 October 2026: 02:00 becomes 02:30; 4 April 2027: 02:00 becomes 01:30.
    let go = |dst| slots("15 2 * * *", "Australia/Lord_Howe", dst, "2026-10-02T20:00:00Z", 2);
    assert_eq!(go(Dst::Shift), ["04 02:30+11:00", "05 02:15+11:00"]);
    assert_eq!(go(Dst::Skip), ["05 02:15+11:00", "06 02:15+11:00"]);
    let go = |dst| slots("45 1 * * *", "Australia/Lord_Howe", dst, "2027-04-03T00:00:00Z", 2);
    assert_eq!(go(Dst::Shift), ["04 01:45+11:00", "05 01:45+10:30"]);
    assert_eq!(go(Dst::Twice), ["04 01:45+11:00", "04 01:45+10:30"]);
}

#[test]
fn a_zone_without_daylight_saving_is_plain() {
    let go = slots("0 9 * * 1-5", "Asia/Shanghai", Dst::Twice, "2026-11-13T02:00:00Z", 3);
    assert_eq!(go, ["16 09:00+08:00", "17 09:00+08:00", "18 09:00+08:00"]);
}

#[test]
fn the_latest_slots_of_a_long_span_are_found_quickly() {
    let cron = Cron::parse("* * * * * *", "Europe/Berlin").unwrap();
    let (slots, more) = cron.latest(at("2000-01-01T00:00:00Z"), at("2026-10-25T01:00:00.5Z"), 3);
    assert!(more);
    assert_eq!(slots, ["00:59:58", "00:59:59", "01:00:00"].map(|t| at(&format!("2026-10-25T{t}Z"))));
    let daily = Cron::parse("0 9 * * *", "UTC").unwrap();
    let (slots, more) = daily.latest(at("2026-01-01T09:00:00Z"), at("2026-01-03T09:00:00Z"), 2);
    assert_eq!((slots.len(), more), (2, false));
    assert_eq!(daily.latest(at("2026-01-03T00:00:00Z"), at("2026-01-01T00:00:00Z"), 2), (vec![], false));
}

#[test]
fn the_ends_of_time_are_survived() {
    let cron = Cron::parse("0 0 29 2 *", "Europe/Berlin").unwrap();
    for ms in [i64::MIN, i64::MAX, 253_402_207_200_999, -377_705_023_201_000] {
        cron.next_after(Timestamp(ms));
    }
}

#[test]
fn a_cron_is_stored_as_its_text() {
    let cron = Cron::parse("0 9 * * *", "Asia/Shanghai").unwrap().with_dst(Dst::Skip);
    let json = serde_json::to_value(&cron).unwrap();
    assert_eq!(json, serde_json::json!({"expr": "0 9 * * *", "zone": "Asia/Shanghai", "dst": "skip"}));
    assert_eq!(serde_json::from_value::<Cron>(json).unwrap(), cron);
    assert!(serde_json::from_str::<Cron>(r#"{"expr":"* *","zone":"UTC"}"#).is_err());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(expr in "[-*/0-9,LW#?+@A-Za-z \u{e9}]{0,24}") {
        if let Ok(cron) = Cron::parse(&expr, "UTC") {
            prop_assert!(cron.next_after(Timestamp(0)).is_some());
        }
    }

    /// Away from the seams a slot is a wall clock time that the pattern names, and there is none between.
    #[test]
    fn slots_increase_and_match(
        minute in 0u8..60, hour in 0u8..24, from in 1_700_000_000_000i64..1_900_000_000_000, zone in 0usize..4,
    ) {
        let zone = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"][zone];
        let cron = Cron::parse(&format!("{minute} {hour} * * *"), zone).unwrap();
        let slots = cron.upcoming(Timestamp(from), 20);
        prop_assert_eq!(slots.len(), 20);
        prop_assert!(slots[0] > Timestamp(from));
        let dates: Vec<Date> =
            slots.iter().map(|s| s.to_jiff().to_zoned(TimeZone::get(zone).unwrap()).date()).collect();
        // Under the default rule a daily pattern has exactly one slot on every day.
        prop_assert!(dates.windows(2).all(|pair| pair[0].tomorrow().unwrap() == pair[1]), "{dates:?}");
    }
}
