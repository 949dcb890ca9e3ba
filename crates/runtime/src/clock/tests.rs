//! The clock alone, and servers under a wall clock that was wrong.

mod wrong;

use super::*;

const HOUR: i64 = 3_600_000;

#[test]
fn servers_agree_on_the_time_of_their_store() {
    let clock = Clock::default();
    let ahead = system().after(3_600_000);
    clock.agree(ahead, Duration::ZERO);
    assert!(clock.now().since(ahead) < 10_000 && clock.now() >= ahead);
    let reached = clock.now();
    clock.agree(system(), Duration::ZERO);
    assert!(clock.now() >= reached, "it never goes back");
    assert!(clock.skew_ms() > 3_500_000 && clock.wall() < reached);
}

#[test]
fn clocks_agree_no_more_closely_than_the_round_trip() {
    let clock = Clock::default();
    clock.agree(Timestamp(1_000_000), Duration::ZERO);
    clock.agree(Timestamp(1_000_400), Duration::from_secs(1));
    let WallClock::Store { reported, .. } = clock.state().wall else { panic!("it has the store's clock") };
    assert_eq!(reported, Timestamp(1_000_000));
}

#[test]
fn time_never_goes_back() {
    let clock = Clock::default();
    let ahead = clock.now().after(60_000);
    clock.not_before(ahead);
    assert!(clock.now() >= ahead && clock.now().since(ahead) < 10_000);
    assert_eq!(clock.until(ahead), Duration::ZERO);
    let later = clock.now().after(5_000);
    assert!(clock.until(later) > Duration::from_secs(5), "it takes twice as long");
    assert!(clock.until(later) <= Duration::from_secs(10));
}

#[tokio::test]
async fn a_sleep_ends_within_a_second_after_a_jump_ahead() {
    let wall = ManualWall::default();
    let clock = wall.clock();
    let at = clock.now().after(60_000);
    let jump = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        wall.set(HOUR);
    };
    let in_time = tokio::time::timeout(Duration::from_secs(20), clock.sleep_until(at));
    assert!(tokio::join!(in_time, jump).0.is_ok());
}

#[test]
fn a_skew_is_shown_above_a_minute_and_makes_unready_above_a_day() {
    let wall = ManualWall::default();
    let clock = wall.clock();
    let seen = |moved_ms: i64| {
        clock.now();
        wall.set(moved_ms);
        (clock.skew_warning().is_some(), clock.skew_trouble().is_some())
    };
    assert_eq!(seen(HOUR), (false, false), "a clock ahead is followed");
    assert_eq!(seen(HOUR - 30_000), (false, false));
    assert_eq!(seen(HOUR - 120_000), (true, false));
    assert_eq!(seen(-24 * HOUR), (true, true));
    assert_eq!(seen(2 * HOUR), (false, false));
}
