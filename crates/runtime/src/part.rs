//! Handles of the owners. `Inner` holds the context and the state of every owner; an owner is a cheap handle on it
//! that reads the context, its own state, and calls methods of other owners. The fields of a state are private to the
//! module of its owner, so no owner reads the state of another.

use std::sync::Arc;

use tokio_util::task::TaskTracker;
use windlass_engine::counter::Epoch;
use windlass_engine::project::Project;
use windlass_store::Store;
use windlass_store::run::Owner;

use crate::Settings;
use crate::access::{Access, AccessState};
use crate::bulks::BulksState;
use crate::calls::{Calls, CallsState};
use crate::clock::Clock;
use crate::cluster::{Cluster, ClusterState};
use crate::ctx::Ctx;
use crate::feed::Feed;
use crate::grant::GrantSigner;
use crate::jobs::relay::RedisRelay;
use crate::jobs::{Jobs, JobsState};
use crate::money::{Money, MoneyState};
use crate::runs::{Runs, RunsState};
use crate::schedules::{Schedules, SchedulesState};
use crate::stats::Stats;
use crate::workers::{Workers, WorkersState};

/// Everything that a server holds. It owns no handle, so it is dropped with the last of them.
pub(crate) struct Inner {
    pub(crate) ctx: Ctx,
    pub(crate) runs: RunsState,
    pub(crate) bulks: BulksState,
    pub(crate) calls: CallsState,
    pub(crate) jobs: JobsState,
    pub(crate) workers: WorkersState,
    pub(crate) schedules: SchedulesState,
    pub(crate) money: MoneyState,
    pub(crate) cluster: ClusterState,
    pub(crate) stats: Stats,
    pub(crate) access: AccessState,
}

/// A handle on `Inner`, with access to the context and to the other owners.
pub(crate) trait RuntimePart {
    fn inner(&self) -> &Arc<Inner>;

    fn ctx(&self) -> &Ctx {
        &self.inner().ctx
    }

    fn store(&self) -> &dyn Store {
        &*self.ctx().store
    }

    /// The project that the server works for.
    fn project(&self) -> &Project {
        &self.settings().project
    }

    fn clock(&self) -> &Clock {
        &self.ctx().clock
    }

    fn settings(&self) -> &Settings {
        &self.ctx().settings
    }

    /// Signs and checks leases of jobs and ids of calls.
    fn grants(&self) -> &GrantSigner {
        &self.ctx().grants
    }

    fn feed(&self) -> &Feed {
        &self.ctx().feed
    }

    fn tasks(&self) -> &TaskTracker {
        &self.ctx().tasks
    }

    /// Completes when the server stops.
    fn stopped(&self) -> impl Future<Output = ()> + Send {
        self.ctx().shutdown.cancelled()
    }

    /// The identity of this server: its id and its epoch.
    fn owner(&self) -> Owner {
        self.ctx().server.owner
    }

    /// The epoch of this server.
    fn epoch(&self) -> Epoch {
        self.owner().epoch
    }

    /// Whether other servers may use the store, too.
    fn is_shared(&self) -> bool {
        self.store().is_shared()
    }

    fn is_draining(&self) -> bool {
        self.ctx().is_draining()
    }

    fn runs(&self) -> Runs {
        Runs::of(self.inner())
    }

    fn calls(&self) -> Calls {
        Calls::of(self.inner())
    }

    fn jobs(&self) -> Jobs {
        Jobs::of(self.inner())
    }

    fn relay(&self) -> RedisRelay {
        RedisRelay::of(self.inner())
    }

    fn workers(&self) -> Workers {
        Workers::of(self.inner())
    }

    fn schedules(&self) -> Schedules {
        Schedules::of(self.inner())
    }

    fn money(&self) -> Money {
        Money::of(self.inner())
    }

    fn cluster(&self) -> Cluster {
        Cluster::of(self.inner())
    }

    fn access(&self) -> Access {
        Access::of(self.inner())
    }

    fn stats(&self) -> &Stats {
        &self.inner().stats
    }
}

/// Defines the handle of an owner, with access to its state in a field of `Inner` if it has one.
macro_rules! part {
    ($(#[$doc:meta])* $vis:vis $name:ident, $field:ident: $state:ty) => {
        crate::part::part! { $(#[$doc])* $vis $name }

        impl $name {
            fn state(&self) -> &$state {
                &self.inner.$field
            }
        }
    };
    ($(#[$doc:meta])* $vis:vis $name:ident) => {
        $(#[$doc])*
        #[derive(Clone)]
        $vis struct $name {
            inner: std::sync::Arc<crate::part::Inner>,
        }

        impl $name {
            pub(crate) fn of(inner: &std::sync::Arc<crate::part::Inner>) -> Self {
                $name { inner: inner.clone() }
            }
        }

        impl crate::part::RuntimePart for $name {
            fn inner(&self) -> &std::sync::Arc<crate::part::Inner> {
                &self.inner
            }
        }
    };
}

pub(crate) use part;
