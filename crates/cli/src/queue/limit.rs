//! `windlass queue limit`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use windlass_sdk::types::{LimitChange, QueueLimits, Rate};

use super::told;
use crate::session::{Session, duration, in_ms, in_words};

#[derive(Args)]
pub(crate) struct Limit {
    /// The name of the queue.
    queue: String,
    /// Jobs of the queue that workers may have at once; `none` lifts the limit.
    #[arg(long, value_name = "N", value_parser = count)]
    concurrency: Option<Said<u32>>,
    /// How often one is handed out: 10/s, 100/m, 1000/h, 5/250ms; `none` lifts the limit.
    #[arg(long, value_name = "N/TIME", value_parser = rate)]
    rate: Option<Said<Rate>>,
    /// How many may come at once after a pause; as many as the rate counts unless given.
    #[arg(long, value_name = "N")]
    burst: Option<u32>,
    /// Jobs with the same limit key that workers may have at once; `none` lifts the limit.
    #[arg(long, value_name = "N", value_parser = count)]
    key_concurrency: Option<Said<u32>>,
    /// How often one with the same limit key is handed out; `none` lifts the limit.
    #[arg(long, value_name = "N/TIME", value_parser = rate)]
    key_rate: Option<Said<Rate>>,
    /// The same as --burst, for --key-rate.
    #[arg(long, value_name = "N")]
    key_burst: Option<u32>,
    /// Let limit keys take turns even if nothing limits them.
    #[arg(long, overrides_with = "no_fair")]
    fair: bool,
    /// Let them come as they come.
    #[arg(long)]
    no_fair: bool,
    /// Lift every limit that is not named.
    #[arg(long)]
    clear: bool,
}

/// A limit, or that there is to be none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Said<T>(Option<T>);

impl Limit {
    /// Lays what was said over the limits that are there.
    fn over(&self, limits: QueueLimits) -> Result<QueueLimits> {
        let mut limits = if self.clear { QueueLimits::default() } else { limits };
        limits.concurrency = self.concurrency.map_or(limits.concurrency, |said| said.0);
        limits.key_concurrency = self.key_concurrency.map_or(limits.key_concurrency, |said| said.0);
        limits.rate = with_burst(self.rate.map_or(limits.rate, |said| said.0), self.burst, "--rate")?;
        limits.key_rate =
            with_burst(self.key_rate.map_or(limits.key_rate, |said| said.0), self.key_burst, "--key-rate")?;
        limits.fair = self.fair || limits.fair && !self.no_fair;
        Ok(limits)
    }

    /// What was said, and no more: others may change the rest meanwhile.
    fn change(&self, now: QueueLimits) -> Result<LimitChange> {
        let limits = self.over(now)?;
        Ok(LimitChange {
            concurrency: self.concurrency.is_some().then_some(limits.concurrency),
            rate: (self.rate.is_some() || self.burst.is_some()).then_some(limits.rate),
            key_concurrency: self.key_concurrency.is_some().then_some(limits.key_concurrency),
            key_rate: (self.key_rate.is_some() || self.key_burst.is_some()).then_some(limits.key_rate),
            fair: (self.fair || self.no_fair).then_some(limits.fair),
        })
    }

    /// Whether a rate that is there is to burst.
    fn bursts_alone(&self) -> bool {
        self.burst.is_some() && self.rate.is_none() || self.key_burst.is_some() && self.key_rate.is_none()
    }

    fn says_nothing(&self) -> bool {
        let is_limit = self.concurrency.is_some() || self.rate.is_some() || self.burst.is_some();
        let is_key_limit =
            self.key_concurrency.is_some() || self.key_rate.is_some() || self.key_burst.is_some();
        !is_limit && !is_key_limit && !self.fair && !self.no_fair && !self.clear
    }
}

fn with_burst(rate: Option<Rate>, burst: Option<u32>, flag: &str) -> Result<Option<Rate>> {
    match (rate, burst) {
        (Some(rate), Some(_)) => Ok(Some(Rate { burst, ..rate })),
        (rate, None) => Ok(rate),
        (None, Some(_)) => bail!("there is no rate that could burst: give one with {flag}, such as 10/s"),
    }
}

pub(super) async fn limit(limit: Limit, session: &Session) -> Result<ExitCode> {
    if limit.says_nothing() {
        bail!("say what is to limit `{}`, such as --concurrency 5 or --rate 10/s, or --clear", limit.queue);
    }
    let (client, name) = (&session.client, &limit.queue);
    if limit.clear {
        return told(&client.limit_queue(name, &limit.over(QueueLimits::default())?).await?, session);
    }
    let now = if limit.bursts_alone() { client.queue(name).await?.limits } else { QueueLimits::default() };
    told(&client.change_limits(name, &limit.change(now)?).await?, session)
}

/// Limits in a few words; none when there are none.
pub(super) fn words(limits: &QueueLimits) -> String {
    let of_rate = |rate: &Rate| {
        let burst = rate.burst.map(|burst| format!(" burst {burst}")).unwrap_or_default();
        let per = match rate.per_ms {
            1_000 => "s".to_owned(),
            60_000 => "m".to_owned(),
            3_600_000 => "h".to_owned(),
            86_400_000 => "d".to_owned(),
            other => in_words(i64::from(other)),
        };
        format!("{}/{per}{burst}", rate.count)
    };
    let all = [
        limits.concurrency.map(|n| format!("{n} at once")),
        limits.rate.as_ref().map(of_rate),
        limits.key_concurrency.map(|n| format!("{n} at once per key")),
        limits.key_rate.as_ref().map(|rate| format!("{} per key", of_rate(rate))),
        limits.fair.then(|| "keys take turns".to_owned()),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn count(text: &str) -> Result<Said<u32>, String> {
    if text == "none" {
        return Ok(Said(None));
    }
    match text.parse() {
        Ok(0) => Err("nothing would ever be handed out: use `windlass queue pause`, or `none`".to_owned()),
        Ok(n) => Ok(Said(Some(n))),
        Err(_) => Err("it must be a whole number or `none`".to_owned()),
    }
}

/// So many in so long, as people write it: `10/s`, `5/250ms`.
fn rate(text: &str) -> Result<Said<Rate>, String> {
    if text == "none" {
        return Ok(Said(None));
    }
    let wrong = || format!("`{text}` is no rate such as 10/s, 100/m, 1000/h or 5/250ms, and not `none`");
    let (number, per) = text.split_once('/').filter(|(_, per)| !per.trim().is_empty()).ok_or_else(wrong)?;
    let number = number.trim().parse().map_err(|_| wrong())?;
    let per = per.trim();
    // A unit alone is one of it.
    let length =
        if per.starts_with(|c: char| c.is_ascii_digit()) { per.to_owned() } else { format!("1{per}") };
    let length = duration(&length).map_err(|_| wrong())?;
    let per_ms = u32::try_from(in_ms(length)).map_err(|_| wrong())?;
    Ok(Said(Some(Rate { count: number, per_ms, burst: None })))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        limit: Limit,
    }

    fn over(words: &str, limits: QueueLimits) -> Result<QueueLimits> {
        let words = ["limit", "mail"].into_iter().chain(words.split_whitespace());
        Line::try_parse_from(words)?.limit.over(limits)
    }

    #[test]
    fn rates_are_read_as_people_write_them() {
        let read = |text| rate(text).map(|said| said.0.map(|rate| (rate.count, rate.per_ms)));
        assert_eq!(read("10/s"), Ok(Some((10, 1_000))));
        assert_eq!(read("5/250ms"), Ok(Some((5, 250))));
        assert_eq!(read("100/m"), Ok(Some((100, 60_000))));
        assert_eq!(read("none"), Ok(None));
        for wrong in ["10", "/s", "10/", "x/s", "10/fortnight", "-1/s", "1/999999d"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_what_is_named_is_sent() {
        let change = |words: &str| {
            let words = ["limit", "mail"].into_iter().chain(words.split_whitespace());
            let limit = Line::try_parse_from(words).unwrap().limit;
            serde_json::to_value(limit.change(QueueLimits::default()).unwrap()).unwrap()
        };
        assert_eq!(change("--concurrency 5 --rate none"), json!({ "concurrency": 5, "rate": null }));
        assert_eq!(change("--no-fair"), json!({ "fair": false }));
        let rate = json!({ "count": 1, "per_ms": 1_000, "burst": 3 });
        assert_eq!(change("--key-rate 1/s --key-burst 3"), json!({ "key_rate": rate }));
    }

    #[test]
    fn what_is_not_named_stays() {
        let first = over("--concurrency 5 --rate 10/s --burst 20 --fair", QueueLimits::default()).unwrap();
        assert_eq!(words(&first), "5 at once, 10/s burst 20, keys take turns");
        let second = over("--rate none --key-rate 1/m --no-fair", first.clone()).unwrap();
        assert_eq!(words(&second), "5 at once, 1/m per key");
        assert_eq!(words(&over("--clear --key-concurrency 1", first).unwrap()), "1 at once per key");
        assert!(over("--burst 5", second).is_err());
    }
}
