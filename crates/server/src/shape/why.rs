//! The reasons why a run waits, in words.

use windlass_engine::money::Amount;
use windlass_engine::run::{Cause, Reason as EngineReason};
use windlass_engine::time::Timestamp;
use windlass_sdk::contract::WaitReason;

use super::time;

/// One thing that keeps a run from going on.
pub(crate) fn reason(reason: EngineReason) -> WaitReason {
    let shaped =
        WaitReason { node: reason.node.to_string(), command: reason.command, ..WaitReason::default() };
    let words = |waits_for: &str, text: String| WaitReason {
        waits_for: waits_for.to_owned(),
        text,
        ..shaped.clone()
    };
    match reason.cause {
        Cause::Start => words("start", "it has not been started".to_owned()),
        Cause::Resume => words("resume", "it was paused".to_owned()),
        Cause::Step => words("step", "it is advanced by hand".to_owned()),
        Cause::Turn => words("turn", "it has more to decide, and goes on by itself".to_owned()),
        Cause::Nothing { status } => words("nothing", format!("it has ended: {status}")),
        Cause::CancelConfirmation { n_calls } => words(
            "cancel_confirmation",
            format!("{n_calls} calls were told to stop and have not said so yet"),
        ),
        Cause::Answer { service, by, attempt, deadline } => {
            let text =
                format!("a {by} works on `{service}`, attempt {attempt}{}", by_when(", until", deadline));
            let (service, attempt) = (Some(service), Some(attempt));
            WaitReason { service, attempt, until: deadline.map(time), ..words("answer", text) }
        }
        Cause::Retry { at, after } => {
            let because = after.as_deref().map_or_else(String::new, |after| format!(" after: {after}"));
            let text = format!("the next attempt is made at {at}{because}");
            WaitReason { after, until: Some(time(at)), ..words("retry", text) }
        }
        Cause::Report { again_at } => {
            let text = format!(
                "the call is suspended: a report ends it{}",
                by_when(", or it is asked again at", again_at)
            );
            WaitReason { until: again_at.map(time), ..words("report", text) }
        }
        Cause::Timer { until } => {
            WaitReason { until: Some(time(until)), ..words("timer", format!("a timer, until {until}")) }
        }
        Cause::Signal { key, until } => {
            let text = format!("a signal `{key}`{}", by_when(", until", until));
            WaitReason { key: Some(key), until: until.map(time), ..words("signal", text) }
        }
        Cause::Approval { by, until } => {
            let who = if by.is_empty() { "any person".to_owned() } else { by.join(", ") };
            let text = format!("a decision by {who}{}", by_when(", until", until));
            WaitReason { assignees: by, until: until.map(time), ..words("approval", text) }
        }
        Cause::Balance { amount } => {
            let text = format!("a call of {amount} is more than the account has");
            WaitReason { amount: Some(amount.0), ..words("balance", text) }
        }
        Cause::Budget { amount, held } => {
            let text = if held > Amount::ZERO {
                format!("child runs may still spend {held} of the budget: it goes on when they have ended")
            } else {
                format!("a call of {amount} would pass the budget")
            };
            WaitReason { amount: Some(amount.0), ..words("budget", text) }
        }
    }
}

fn by_when(words: &str, at: Option<Timestamp>) -> String {
    at.map_or_else(String::new, |at| format!("{words} {at}"))
}
