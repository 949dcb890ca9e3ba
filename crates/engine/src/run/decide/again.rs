//! When a call is made or asked again.

use super::call::CallDecider;
use crate::event::Next;
use crate::id::mix;
use crate::plan::{Exec, Recheck, Temporary};
use crate::retry::{Delivery, DeliveryProgress, Fault, FaultKind};
use crate::run::state::Work;

/// Quick tries after a temporary fault, before the node is suspended.
const QUICK_TRIES: u32 = 3;
/// The first quick try waits this long, the second twice as long, and so on: within a second together.
const QUICK_DELAY_MS: u64 = 100;
/// How often that wait doubles while the faults go on: from ten seconds to some five minutes, or to an hour where
/// the node or the service sets longer waits.
const RECHECK_DOUBLINGS: u32 = 5;
const RECHECK_LONGEST_MS: u64 = 3_600_000;

impl CallDecider<'_> {
    /// Which attempt comes next and after how long; `None` when there is none left.
    pub(super) fn next_attempt(
        &self,
        work: &Work,
        fault: &Fault,
        delivery: Delivery,
        recheck_ms: u64,
    ) -> Option<(Next, u64)> {
        let call = self.call;
        if !fault.retryable || self.run.is_draining(self.path) {
            return None;
        }
        if self.switches_worker(work, fault, delivery) {
            return Some((Next::Failover, call.failover_delay_ms));
        }
        if call.temporary == Temporary::Suspends && fault.kind.is_temporary() {
            return Some(if work.n_quick < QUICK_TRIES {
                (Next::Quick, QUICK_DELAY_MS * u64::from(work.n_quick + 1))
            } else {
                (Next::Recheck, longer(recheck_ms, work.n_rechecks))
            });
        }
        let seed = mix(self.run.id.uuid().as_u64_pair().1 ^ work.fence().unwrap_or_default().0);
        (work.n_tries <= call.retry.max).then(|| (Next::Retry, call.retry.delay_ms_after(work.n_tries, seed)))
    }

    /// Whether another worker is called within this try: after a call that was not answered, and, with a number of
    /// workers to try, also after a worker's error. A time-out is neither: the worker may be at work.
    fn switches_worker(&self, work: &Work, fault: &Fault, delivery: Delivery) -> bool {
        if self.call.exec != Exec::Http || !delivery.has_other_worker {
            return false;
        }
        let is_unanswered = delivery.progress != DeliveryProgress::Answered;
        match self.call.failover_max {
            0 => is_unanswered,
            workers_max => {
                let is_error = matches!(fault.kind, FaultKind::Error | FaultKind::Transport);
                work.n_deliveries < workers_max && (is_unanswered || is_error)
            }
        }
    }

    /// How often the suspended call is asked again if its worker does not say; `None` = when it is reported.
    pub(super) fn recheck_ms(&self) -> Option<u64> {
        let service = self.spot.service_terms(self.run);
        match self.call.recheck {
            Recheck::Every(ms) => Some(ms),
            Recheck::UntilReported => None,
            Recheck::OfService | Recheck::Reconciled if service.until_reported => None,
            Recheck::OfService => service.recheck_ms,
            Recheck::Reconciled => service.recheck_ms.or(Some(Recheck::RECONCILE_MS)),
        }
    }
}

/// The wait before the next recheck: it doubles with each temporary fault, up to a limit.
fn longer(recheck_ms: u64, n_rechecks: u32) -> u64 {
    let most = recheck_ms.max(RECHECK_LONGEST_MS);
    recheck_ms.saturating_mul(1 << n_rechecks.min(RECHECK_DOUBLINGS)).min(most)
}
