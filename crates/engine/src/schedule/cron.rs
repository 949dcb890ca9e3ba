//! Cron expressions in a time zone.
//!
//! The expression is read by `croner`, which knows the notation; which *instants* it means is decided here,
//! because that is where daylight saving time makes the difference. Time is cut into stretches of constant
//! offset; within one, wall clock and instant run in step, and only the seams between them need a rule.

use std::fmt;

use croner::{Cron as Pattern, CronDateTime};
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use serde::{Deserialize, Serialize};

use crate::problem::{Problem, Severity, did_you_mean};
use crate::time::{LATEST, Timestamp};

/// How far ahead a slot is looked for. The rarest date there is, a 29th of February on a given weekday across a
/// century without leap day, comes back after 40 years.
const YEARS_AHEAD: i16 = 50;
/// Characters of an expression; the longest sensible one has a list in every field.
const EXPRESSION_CHARS: usize = 512;
/// Seams crossed in one search: no zone has more than a few per year.
const SEAMS: usize = 1_000;

/// The rule for slots of a pattern with given hours when clocks change. A pattern for every hour follows real
/// time under all of these: a time that does not exist does not fire, and one that comes twice fires twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dst {
    /// A slot that does not exist fires at the first instant after the gap; one that comes twice, the first time.
    #[default]
    Shift,
    /// A slot that does not exist does not fire; one that comes twice fires the first time.
    Skip,
    /// A slot that does not exist fires at the first instant after the gap; one that comes twice fires twice.
    Twice,
}

/// When something is due, again and again.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Text", into = "Text")]
pub struct Cron {
    expr: String,
    zone: String,
    dst: Dst,
    pattern: Pattern,
    tz: TimeZone,
    every_hour: bool,
}

/// A cron as it is written down.
#[derive(Serialize, Deserialize)]
struct Text {
    expr: String,
    zone: String,
    #[serde(default)]
    dst: Dst,
}

impl Cron {
    /// Reads five fields, or six with seconds first, or a nickname such as `@daily`; `zone` is an IANA name, empty
    /// for UTC. Patterns that can never be due are refused.
    pub fn parse(expr: &str, zone: &str) -> Result<Cron, Problem> {
        let expr = expr.trim();
        if expr.chars().count() > EXPRESSION_CHARS {
            return Err(bad_cron(
                format!("the expression is longer than {EXPRESSION_CHARS} characters"),
                None,
            ));
        }
        let n_fields = expr.split_whitespace().count();
        if !expr.starts_with('@') && n_fields != 5 && n_fields != 6 {
            let reason = format!("`{expr}` has {n_fields} fields, expected 5, or 6 with seconds first");
            return Err(bad_cron(reason, Some("`0 9 * * 1-5` is nine o'clock on weekdays")));
        }
        let pattern: Pattern = expr.parse().map_err(|_| match expr.strip_prefix('@') {
            Some(nickname) => unknown_nickname(nickname),
            None => unreadable(expr),
        })?;
        let zone = if zone.trim().is_empty() { "UTC" } else { zone.trim() };
        let tz = TimeZone::get(zone).map_err(|_| Problem {
            path: "$.timezone".to_owned(),
            reason: format!("unknown time zone `{}`", zone.chars().take(80).collect::<String>()),
            hint: Some("use an IANA name such as `Europe/Berlin` or `Asia/Shanghai`".to_owned()),
            severity: Severity::Error,
        })?;
        let every_hour = (0..24).all(|hour| pattern.pattern.hour_match(hour).unwrap_or(false));
        let cron = Cron {
            expr: expr.to_owned(),
            zone: zone.to_owned(),
            dst: Dst::default(),
            pattern,
            tz,
            every_hour,
        };
        // Every date falls on every weekday within this span, so a pattern without a slot here never has one.
        if cron.first_civil(civil_year(2000), civil_year(2000 + YEARS_AHEAD)).is_none() {
            let reason = format!("`{expr}` is never due: no month has such a day");
            return Err(bad_cron(reason, Some("`L` is the last day of a month")));
        }
        Ok(cron)
    }

    /// The same, with another rule for clock changes.
    #[must_use]
    pub fn with_dst(mut self, dst: Dst) -> Cron {
        self.dst = dst;
        self
    }

    pub fn expr(&self) -> &str {
        &self.expr
    }

    pub fn zone(&self) -> &str {
        &self.zone
    }

    pub fn dst(&self) -> Dst {
        self.dst
    }

    /// The first slot after `after`; `None` when the calendar ends before there is one.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        // Slots are whole seconds: the first candidate is the next whole second.
        let mut from = jiff::Timestamp::from_second(after.0.div_euclid(1_000).checked_add(1)?).ok()?;
        for _ in 0..SEAMS {
            let span = self.span_at(from);
            // The search may reach a clock change or begin at one: times in its gap are due either way.
            if span.begins_at(from) && self.fires_at_gap(&span) {
                return Some(Timestamp(from.as_millisecond()));
            }
            let end = self.tz.following(from).next().map(|transition| transition.timestamp());
            if let Some(slot) = self.first_in(&span, from, end) {
                return Some(Timestamp(slot.as_millisecond()));
            }
            from = end?;
        }
        None
    }

    /// The next `n` slots after `after`, soonest first.
    pub fn upcoming(&self, after: Timestamp, n: usize) -> Vec<Timestamp> {
        std::iter::successors(self.next_after(after), |slot| self.next_after(*slot)).take(n).collect()
    }

    /// The latest `n` slots in `(after, until]`, oldest first, and whether there were more. Takes time in
    /// proportion to `n`, however long the span.
    pub fn latest(&self, after: Timestamp, until: Timestamp, n: usize) -> (Vec<Timestamp>, bool) {
        let within = |from: Timestamp| -> Vec<Timestamp> {
            let slots = std::iter::successors(self.next_after(from), |slot| self.next_after(*slot));
            slots.take_while(|slot| *slot <= until).take(n.saturating_add(1)).collect()
        };
        let all = within(after);
        if all.len() <= n {
            return (all, false);
        }
        // Too many from `low`, few enough from `high`: halve the span until they meet.
        let (mut low, mut high) = (after.0.max(-LATEST.0), until.0.min(LATEST.0));
        let mut best = Vec::new();
        while high.saturating_sub(low) > 1 {
            let middle = low + (high - low) / 2;
            let slots = within(Timestamp(middle));
            if slots.len() > n {
                low = middle;
            } else {
                (high, best) = (middle, slots);
            }
        }
        (best, true)
    }

    /// The first slot at or after `from` in its span, which ends at `end`.
    fn first_in(
        &self,
        span: &OffsetSpan,
        from: jiff::Timestamp,
        end: Option<jiff::Timestamp>,
    ) -> Option<jiff::Timestamp> {
        let mut start = span.offset.to_datetime(from);
        if let Some(change) = &span.change
            && self.fires_once()
        {
            // After a clock went back, times that were already shown are not shown again.
            start = start.max(change.offset_before.to_datetime(change.at));
        }
        let horizon = start.checked_add(jiff::Span::new().years(YEARS_AHEAD)).unwrap_or(DateTime::MAX);
        let end = end.map_or(horizon, |end| span.offset.to_datetime(end).min(horizon));
        span.offset.to_timestamp(self.first_civil(start, end)?).ok()
    }

    /// Whether a slot lies in the gap that `span` begins with, if it begins with one.
    fn fires_at_gap(&self, span: &OffsetSpan) -> bool {
        let shifts = match self.dst {
            Dst::Shift | Dst::Twice => !self.every_hour,
            Dst::Skip => false,
        };
        let Some(change) = span.change.as_ref().filter(|_| shifts) else {
            return false;
        };
        let (old, new) = (change.offset_before.to_datetime(change.at), span.offset.to_datetime(change.at));
        old < new && self.first_civil(old, new).is_some()
    }

    fn fires_once(&self) -> bool {
        match self.dst {
            Dst::Shift | Dst::Skip => !self.every_hour,
            Dst::Twice => false,
        }
    }

    /// The span of constant offset that `at` lies in.
    fn span_at(&self, at: jiff::Timestamp) -> OffsetSpan {
        let offset = self.tz.to_offset(at);
        let just_after = at.checked_add(jiff::SignedDuration::from_nanos(1)).unwrap_or(at);
        let change = self.tz.preceding(just_after).next().and_then(|transition| {
            let before = transition.timestamp().checked_sub(jiff::SignedDuration::from_nanos(1)).ok()?;
            Some(OffsetChange { at: transition.timestamp(), offset_before: self.tz.to_offset(before) })
        });
        OffsetSpan { offset, change }
    }

    /// The first wall clock time in `[from, end)` that the pattern names, daylight saving aside.
    fn first_civil(&self, from: DateTime, end: DateTime) -> Option<DateTime> {
        let pattern = &self.pattern.pattern;
        let mut day = from.date();
        let mut earliest = from.time();
        while day.to_datetime(Time::midnight()) < end {
            let month = day.month().unsigned_abs();
            if !pattern.month_match(u32::from(month)).unwrap_or(false) {
                day = day.last_of_month().tomorrow().ok()?;
                earliest = Time::midnight();
                continue;
            }
            if self.day_matches(day)
                && let Some(time) = self.first_time(earliest)
            {
                return Some(day.to_datetime(time)).filter(|slot| *slot < end);
            }
            day = day.tomorrow().ok()?;
            earliest = Time::midnight();
        }
        None
    }

    fn day_matches(&self, day: Date) -> bool {
        let weekday = day.to_datetime(Time::midnight()).civil_weekday();
        let (month, number) = (u32::from(day.month().unsigned_abs()), u32::from(day.day().unsigned_abs()));
        self.pattern.pattern.day_match(i32::from(day.year()), month, number, weekday).unwrap_or(false)
    }

    /// The first time of day at or after `earliest` that the pattern names.
    fn first_time(&self, earliest: Time) -> Option<Time> {
        let pattern = &self.pattern.pattern;
        let hours = (earliest.hour()..24).filter(|h| pattern.hour_match(part(*h)).unwrap_or(false));
        for hour in hours {
            let same_hour = hour == earliest.hour();
            let first_minute = if same_hour { earliest.minute() } else { 0 };
            let minutes = (first_minute..60).filter(|m| pattern.minute_match(part(*m)).unwrap_or(false));
            for minute in minutes {
                let same_minute = same_hour && minute == earliest.minute();
                let first_second = if same_minute { earliest.second() } else { 0 };
                let mut seconds = first_second..60;
                if let Some(second) = seconds.find(|s| pattern.second_match(part(*s)).unwrap_or(false)) {
                    return Time::new(hour, minute, second, 0).ok();
                }
            }
        }
        None
    }
}

/// A span of time with one offset from UTC, and the change of offset it begins with.
struct OffsetSpan {
    offset: Offset,
    change: Option<OffsetChange>,
}

impl OffsetSpan {
    fn begins_at(&self, at: jiff::Timestamp) -> bool {
        self.change.as_ref().is_some_and(|change| change.at == at)
    }
}

struct OffsetChange {
    at: jiff::Timestamp,
    offset_before: Offset,
}

/// Hours, minutes and seconds are never negative; the calendar's types are only signed for arithmetic.
fn part(n: i8) -> u32 {
    u32::from(n.unsigned_abs())
}

fn civil_year(year: i16) -> DateTime {
    Date::new(year, 1, 1).unwrap_or(Date::MAX).to_datetime(Time::midnight())
}

/// Allowed values of each field, seconds first.
const FIELDS: [(&str, &str); 6] = [
    ("second", "0-59"),
    ("minute", "0-59"),
    ("hour", "0-23"),
    ("day of the month", "1-31, `L` for the last, `15W` for the weekday next to the 15th"),
    ("month", "1-12 or JAN-DEC"),
    ("day of the week", "0-7 or SUN-SAT, `5#2` for the second friday, `5L` for the last"),
];

const NICKNAMES: [&str; 5] = ["@hourly", "@daily", "@weekly", "@monthly", "@yearly"];

fn unknown_nickname(nickname: &str) -> Problem {
    let likely = match nickname.to_ascii_lowercase().as_str() {
        "nightly" | "midnight" | "day" | "everyday" => {
            Some("did you mean `@daily`? it is midnight; `0 3 * * *` is three o'clock")
        }
        "hour" | "every_hour" => Some("did you mean `@hourly`?"),
        "week" | "weekday" | "weekdays" => {
            Some("did you mean `@weekly`? `0 9 * * 1-5` is nine o'clock on weekdays")
        }
        "month" => Some("did you mean `@monthly`?"),
        "year" | "annual" => Some("did you mean `@yearly`?"),
        "minutely" | "minute" | "every_minute" => Some("`* * * * *` is every minute"),
        "reboot" | "startup" => {
            Some("schedules follow the clock; start a run with `windlass run start` instead")
        }
        _ => None,
    };
    let nickname = format!("@{nickname}");
    let nearest = || did_you_mean(&nickname, NICKNAMES);
    let hint = likely
        .map(str::to_owned)
        .or_else(nearest)
        .unwrap_or_else(|| format!("use one of {}", NICKNAMES.join(", ")));
    bad_cron(format!("`{nickname}` is not a cron nickname"), Some(&hint))
}

/// Names the fields that cannot be read, each tried with nothing beside it.
fn unreadable(expr: &str) -> Problem {
    let words: Vec<&str> = expr.split_whitespace().collect();
    // Five fields begin with the minute.
    let names = FIELDS.iter().skip(FIELDS.len().saturating_sub(words.len()));
    let is_bad = |at: usize| {
        let alone = (0..words.len()).map(|other| if other == at { words[at] } else { "*" });
        alone.collect::<Vec<_>>().join(" ").parse::<Pattern>().is_err()
    };
    let bad = names.zip(&words).enumerate().filter(|(at, _)| is_bad(*at));
    let told: Vec<String> = bad
        .map(|(_, ((name, allowed), word))| format!("`{word}` is no {name} (allowed: {allowed})"))
        .collect();
    let hint = "in every field also `*`, lists `1,5`, ranges `1-5` and steps `*/5`; or one of @hourly, @daily, \
                @weekly, @monthly, @yearly";
    let why = if told.is_empty() { String::new() } else { format!(": {}", told.join("; ")) };
    bad_cron(format!("`{expr}` is not a cron expression{why}"), Some(hint))
}

fn bad_cron(reason: String, hint: Option<&str>) -> Problem {
    Problem {
        path: "$.cron_expr".to_owned(),
        reason,
        hint: hint.map(str::to_owned),
        severity: Severity::Error,
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        (&self.expr, &self.zone, self.dst) == (&other.expr, &other.zone, other.dst)
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cron({} in {}, {:?})", self.expr, self.zone, self.dst)
    }
}

impl TryFrom<Text> for Cron {
    type Error = Problem;

    fn try_from(text: Text) -> Result<Cron, Problem> {
        Ok(Cron::parse(&text.expr, &text.zone)?.with_dst(text.dst))
    }
}

impl From<Cron> for Text {
    fn from(cron: Cron) -> Text {
        Text { expr: cron.expr, zone: cron.zone, dst: cron.dst }
    }
}

#[cfg(test)]
mod tests;
