//! Calls that this server makes itself: to push workers and to scripts.

use tokio_util::sync::CancellationToken;
use windlass_engine::effect::Order;
use windlass_engine::input::Outcome;

use crate::Runtime;

/// How a call went.
#[derive(Debug, Clone)]
pub(crate) struct Reported {
    pub(crate) outcome: Outcome,
    pub(crate) worker: Option<String>,
    /// What it wrote beside its result.
    pub(crate) log: Option<String>,
}

impl Runtime {
    /// Makes a call of the kind http or script and says how it ended. When the token is cancelled it stops whoever
    /// works, as far as that can be done, and answers `Outcome::Canceled`.
    pub(crate) async fn call(&self, order: &Order, cancel: &CancellationToken) -> Reported {
        let _ = (order, cancel);
        unimplemented!()
    }
}
