//! The native surface, for the console, the command line and the SDKs.

mod account;
mod action;
mod approval;
mod audit;
pub(crate) mod bulk;
mod call;
mod definition;
mod diff;
mod doctor;
mod example;
mod flow;
mod graph;
mod health;
mod job;
mod key;
mod log;
mod metrics;
pub(crate) mod overview;
mod price;
mod pull;
mod round;
mod run;
mod search;
mod series;
mod service;
mod start;
mod stats;
mod stream;
mod template;
mod trace;
mod view;

pub(crate) use stats::claim_times;
pub(crate) use trace::reasons;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// Every route, with its place in the OpenAPI document.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().merge(flow_routes()).merge(run_routes()).merge(money_routes()).merge(work_routes())
}

fn flow_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(flow::list, flow::create))
        .routes(routes!(definition::validate))
        .routes(routes!(example::list, example::load))
        .routes(routes!(definition::expand))
        .routes(routes!(flow::show))
        .routes(routes!(flow::versions, flow::publish))
        .routes(routes!(flow::version))
        .routes(routes!(diff::diff))
        .routes(routes!(graph::flow))
        .routes(routes!(graph::svg))
        .routes(routes!(template::instantiate))
        .routes(routes!(start::start))
        .routes(routes!(stats::flow))
}

fn run_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(run::list))
        .routes(routes!(run::counts))
        .routes(routes!(bulk::list, bulk::create))
        .routes(routes!(bulk::show))
        .routes(routes!(bulk::cancel))
        .routes(routes!(run::show))
        .routes(routes!(view::view))
        .routes(routes!(view::output))
        .routes(routes!(graph::run))
        .routes(routes!(round::state))
        .routes(routes!(round::state_diff))
        .routes(routes!(trace::attempts))
        .routes(routes!(trace::journal))
        .routes(routes!(log::list))
        .routes(routes!(trace::why))
        .routes(routes!(stats::run))
        .routes(routes!(stream::run_events))
        .routes(routes!(stream::events))
        .routes(routes!(action::cancel))
        .routes(routes!(action::pause))
        .routes(routes!(action::resume))
        .routes(routes!(action::step))
        .routes(routes!(round::retry))
        .routes(routes!(action::continue_node))
        .routes(routes!(action::signal))
        .routes(routes!(action::decide))
        .routes(routes!(round::rerun))
        .routes(routes!(action::budget))
        .routes(routes!(approval::list))
}

fn money_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(account::list, account::open))
        .routes(routes!(account::show))
        .routes(routes!(account::deposit))
        .routes(routes!(account::ledger))
        .routes(routes!(price::list))
        .routes(routes!(price::show, price::set, price::delete))
}

fn work_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(job::list, job::create))
        .routes(routes!(job::show))
        .routes(routes!(job::attempts))
        .routes(routes!(job::cancel))
        .routes(routes!(job::retry))
        .routes(routes!(pull::claim))
        .routes(routes!(pull::finish))
        .routes(routes!(pull::exchange))
        .routes(routes!(pull::extend))
        .routes(routes!(call::report))
        .routes(routes!(service::list))
        .routes(routes!(service::show, service::set))
        .routes(routes!(doctor::examine))
        .routes(routes!(overview::show))
        .routes(routes!(overview::about))
        .routes(routes!(series::series))
        .routes(routes!(search::search))
        .routes(routes!(audit::list))
        .routes(routes!(audit::head))
        .routes(routes!(audit::verify))
        .routes(routes!(key::list, key::create))
        .routes(routes!(key::revoke))
        .routes(routes!(key::rotate))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(stats::server))
        .routes(routes!(metrics::metrics))
}
