//! What may happen to queues with limits, in any order.

use proptest::prelude::*;
use windlass_store::queue::{QueueLimits, Rate};

#[derive(Debug, Clone)]
pub(super) enum Step {
    Make { queue: usize, service: usize, key: u8, priority: i32, is_run: bool },
    Take { queues: u8, services: u8, max: usize },
    Read { queues: u8, services: u8 },
    Tell,
    PutBack,
    Claim,
    Finish { done: bool },
    Wait { ms: i64 },
    Limit(QueueLimits),
    Forget,
    Doubt,
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

pub(super) fn steps() -> impl Strategy<Value = Step> {
    let key = prop_oneof![3 => 0..4u8, 1 => 0..30u8];
    let make = (prop_oneof![4 => Just(0usize), 1 => Just(1)], 0..2usize, key, -1..2i32, any::<bool>());
    prop_oneof![
        10 => make.prop_map(|(queue, service, key, priority, is_run)| {
            Step::Make { queue, service, key, priority, is_run }
        }),
        6 => (0..4u8, 0..4u8, 1..4usize).prop_map(|(queues, services, max)| Step::Take { queues, services, max }),
        2 => (0..4u8, 0..4u8).prop_map(|(queues, services)| Step::Read { queues, services }),
        1 => Just(Step::Tell),
        1 => Just(Step::PutBack),
        3 => Just(Step::Claim),
        5 => any::<bool>().prop_map(|done| Step::Finish { done }),
        2 => (1..30i64).prop_map(|ms| Step::Wait { ms }),
        1 => limits().prop_map(Step::Limit),
        1 => Just(Step::Forget),
        1 => Just(Step::Doubt),
    ]
}
