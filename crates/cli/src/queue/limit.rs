//! `windlass queue limit`.

use anyhow::{Result, bail};
use clap::Args;
use windlass_sdk::contract::{LimitChange, QueueLimitSettings, RateLimit};

use super::print_queue;
use crate::exit::{Exit, usage};
use crate::session::{Session, duration, in_ms, in_words};

#[derive(Args)]
pub(crate) struct QueueLimitArgs {
    /// The name of the queue.
    queue: String,
    /// Running jobs of the queue at most; `none` removes the limit.
    #[arg(long, value_name = "N", value_parser = count)]
    concurrency: Option<LimitValue<u32>>,
    /// Started jobs per time: 10/s, 100/m, 1000/h, 5/250ms; `none` removes the limit.
    #[arg(long, value_name = "N/TIME", value_parser = rate)]
    rate: Option<LimitValue<RateLimit>>,
    /// Jobs that may start at once after a pause [default: the count of the rate].
    #[arg(long, value_name = "N")]
    burst: Option<u32>,
    /// Running jobs with the same limit key at most; `none` removes the limit.
    #[arg(long, value_name = "N", value_parser = count)]
    key_concurrency: Option<LimitValue<u32>>,
    /// Started jobs with the same limit key per time; `none` removes the limit.
    #[arg(long, value_name = "N/TIME", value_parser = rate)]
    key_rate: Option<LimitValue<RateLimit>>,
    /// The same as --burst, for --key-rate.
    #[arg(long, value_name = "N")]
    key_burst: Option<u32>,
    /// Let limit keys take turns even without a limit per key.
    #[arg(long, overrides_with = "no_fair")]
    fair: bool,
    /// Start jobs in order of creation, without regard to their limit keys.
    #[arg(long)]
    no_fair: bool,
    /// Remove every limit that is not named.
    #[arg(long)]
    clear: bool,
}

/// A new limit, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LimitValue<T>(Option<T>);

impl QueueLimitArgs {
    /// The limits with the flags applied.
    fn over(&self, limits: QueueLimitSettings) -> Result<QueueLimitSettings> {
        let mut limits = if self.clear { QueueLimitSettings::default() } else { limits };
        limits.concurrency = self.concurrency.map_or(limits.concurrency, |given| given.0);
        limits.key_concurrency = self.key_concurrency.map_or(limits.key_concurrency, |given| given.0);
        limits.rate = with_burst(self.rate.map_or(limits.rate, |given| given.0), self.burst, "--rate")?;
        limits.key_rate =
            with_burst(self.key_rate.map_or(limits.key_rate, |given| given.0), self.key_burst, "--key-rate")?;
        limits.fair = self.fair || limits.fair && !self.no_fair;
        Ok(limits)
    }

    /// The change that the flags ask for. It leaves the other limits out, because another client may change them meanwhile.
    fn change(&self, now: QueueLimitSettings) -> Result<LimitChange> {
        let limits = self.over(now)?;
        Ok(LimitChange {
            concurrency: self.concurrency.is_some().then_some(limits.concurrency),
            rate: (self.rate.is_some() || self.burst.is_some()).then_some(limits.rate),
            key_concurrency: self.key_concurrency.is_some().then_some(limits.key_concurrency),
            key_rate: (self.key_rate.is_some() || self.key_burst.is_some()).then_some(limits.key_rate),
            fair: (self.fair || self.no_fair).then_some(limits.fair),
        })
    }

    /// Whether a burst is given for a rate that exists.
    fn bursts_alone(&self) -> bool {
        self.burst.is_some() && self.rate.is_none() || self.key_burst.is_some() && self.key_rate.is_none()
    }

    fn is_empty(&self) -> bool {
        let is_limit = self.concurrency.is_some() || self.rate.is_some() || self.burst.is_some();
        let is_key_limit =
            self.key_concurrency.is_some() || self.key_rate.is_some() || self.key_burst.is_some();
        !is_limit && !is_key_limit && !self.fair && !self.no_fair && !self.clear
    }
}

fn with_burst(rate: Option<RateLimit>, burst: Option<u32>, flag: &str) -> Result<Option<RateLimit>> {
    match (rate, burst) {
        (Some(rate), Some(_)) => Ok(Some(RateLimit { burst, ..rate })),
        (rate, None) => Ok(rate),
        (None, Some(_)) => bail!("a burst needs a rate: add {flag}, such as {flag} 10/s"),
    }
}

pub(super) async fn limit(limit: QueueLimitArgs, session: &Session) -> Result<Exit> {
    if limit.is_empty() {
        return Err(usage(format!(
            "no limit of `{}` is given: add one, such as --concurrency 5 or --rate 10/s, or --clear",
            limit.queue
        )));
    }
    let (client, name) = (&session.client, &limit.queue);
    if limit.clear {
        return print_queue(
            &client.queues().set_limits(name, &limit.over(QueueLimitSettings::default())?).await?,
            session,
        );
    }
    let now = if limit.bursts_alone() {
        client.queues().show(name).await?.limits
    } else {
        QueueLimitSettings::default()
    };
    print_queue(&client.queues().change_limits(name, &limit.change(now)?).await?, session)
}

/// Limits in a few words; empty without limits.
pub(super) fn words(limits: &QueueLimitSettings) -> String {
    let of_rate = |rate: &RateLimit| {
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

fn count(text: &str) -> Result<LimitValue<u32>, String> {
    if text == "none" {
        return Ok(LimitValue(None));
    }
    match text.parse() {
        Ok(0) => Err("no job would ever start: use `windlass queue pause`, or `none`".to_owned()),
        Ok(n) => Ok(LimitValue(Some(n))),
        Err(_) => Err("write a whole number or `none`".to_owned()),
    }
}

/// Reads a rate: `10/s`, `5/250ms`.
fn rate(text: &str) -> Result<LimitValue<RateLimit>, String> {
    if text == "none" {
        return Ok(LimitValue(None));
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
    Ok(LimitValue(Some(RateLimit { count: number, per_ms, burst: None })))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Parser)]
    struct ParsedLimit {
        #[command(flatten)]
        limit: QueueLimitArgs,
    }

    fn over(words: &str, limits: QueueLimitSettings) -> Result<QueueLimitSettings> {
        let words = ["limit", "mail"].into_iter().chain(words.split_whitespace());
        ParsedLimit::try_parse_from(words)?.limit.over(limits)
    }

    #[test]
    fn rates_are_read() {
        let read = |text| rate(text).map(|given| given.0.map(|rate| (rate.count, rate.per_ms)));
        assert_eq!(read("10/s"), Ok(Some((10, 1_000))));
        assert_eq!(read("5/250ms"), Ok(Some((5, 250))));
        assert_eq!(read("100/m"), Ok(Some((100, 60_000))));
        assert_eq!(read("none"), Ok(None));
        for wrong in ["10", "/s", "10/", "x/s", "10/fortnight", "-1/s", "1/999999d"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_named_limits_are_sent() {
        let change = |words: &str| {
            let words = ["limit", "mail"].into_iter().chain(words.split_whitespace());
            let limit = ParsedLimit::try_parse_from(words).unwrap().limit;
            serde_json::to_value(limit.change(QueueLimitSettings::default()).unwrap()).unwrap()
        };
        assert_eq!(change("--concurrency 5 --rate none"), json!({ "concurrency": 5, "rate": null }));
        assert_eq!(change("--no-fair"), json!({ "fair": false }));
        let rate = json!({ "count": 1, "per_ms": 1_000, "burst": 3 });
        assert_eq!(change("--key-rate 1/s --key-burst 3"), json!({ "key_rate": rate }));
    }

    #[test]
    fn limits_that_are_not_named_stay() {
        let first =
            over("--concurrency 5 --rate 10/s --burst 20 --fair", QueueLimitSettings::default()).unwrap();
        assert_eq!(words(&first), "5 at once, 10/s burst 20, keys take turns");
        let second = over("--rate none --key-rate 1/m --no-fair", first.clone()).unwrap();
        assert_eq!(words(&second), "5 at once, 1/m per key");
        assert_eq!(words(&over("--clear --key-concurrency 1", first).unwrap()), "1 at once per key");
        assert!(over("--burst 5", second).is_err());
    }
}
