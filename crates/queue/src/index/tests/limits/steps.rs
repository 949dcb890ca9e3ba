//! Steps of a random test of queues with limits.

use proptest::prelude::*;
use windlass_store::queue::{QueueLimits, Rate};

#[derive(Debug, Clone)]
pub(super) enum LimitStep {
    Make { queue: usize, service: usize, key: u8, priority: i32, is_run: bool },
    Take { queues: u8, services: u8, max: usize },
    Read { queues: u8, services: u8 },
    EndRead,
    PutBack,
    Claim,
    Finish { done: bool },
    Wait { ms: i64 },
    Limit(QueueLimits),
    Forget,
    Invalidate,
}

pub(super) fn limits() -> impl Strategy<Value = QueueLimits> {
    let rate = || {
        let rate = (1..4u32, 1..40u32).prop_map(|(count, per_ms)| Rate { count, per_ms, burst: None });
        proptest::option::of(rate)
    };
    let parts = (proptest::option::of(1..4u32), rate(), proptest::option::of(1..3u32), rate(), any::<bool>());
    parts.prop_map(|(concurrency, rate, key_concurrency, key_rate, fair)| QueueLimits {
        concurrency,
        rate,
        key_concurrency,
        key_rate,
        fair,
    })
}

pub(super) fn steps() -> impl Strategy<Value = LimitStep> {
    let key = prop_oneof![3 => 0..4u8, 1 => 0..30u8];
    let make = (prop_oneof![4 => Just(0usize), 1 => Just(1)], 0..2usize, key, -1..2i32, any::<bool>());
    prop_oneof![
        10 => make.prop_map(|(queue, service, key, priority, is_run)| {
            LimitStep::Make { queue, service, key, priority, is_run }
        }),
        6 => (0..4u8, 0..4u8, 1..4usize).prop_map(|(queues, services, max)| LimitStep::Take { queues, services, max }),
        2 => (0..4u8, 0..4u8).prop_map(|(queues, services)| LimitStep::Read { queues, services }),
        1 => Just(LimitStep::EndRead),
        1 => Just(LimitStep::PutBack),
        3 => Just(LimitStep::Claim),
        5 => any::<bool>().prop_map(|done| LimitStep::Finish { done }),
        2 => (1..30i64).prop_map(|ms| LimitStep::Wait { ms }),
        1 => limits().prop_map(LimitStep::Limit),
        1 => Just(LimitStep::Forget),
        1 => Just(LimitStep::Invalidate),
    ]
}
