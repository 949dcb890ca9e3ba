//! A server in this process: its store, its runtime and its listener. `serve` and `dev` start one.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_runtime::calls::script::{ScriptUser, hide_process};
use windlass_runtime::{Runtime, ScriptPolicy, Settings};
use windlass_server::descriptors::{DescriptorShares, raise_limit};
use windlass_store::sqlite::ExposedFile;
use windlass_store::{Durability, Postgres, Sqlite, Store};
use windlass_tls::{ClientTls, ServerTls};

use super::access::{self, AccessMode};
use super::config::{DatabaseUrl, ScriptConfig, ServerConfig, StoreLocation};
use crate::exit::invalid;
use crate::script_exec;

/// How long a stop may take beyond the time for open calls.
const STOP_GRACE: Duration = Duration::from_secs(5);
const STOPPED_ITSELF: &str = "the server stopped by itself, because another one uses its store or the store is lost: \
     see the messages above, repair that, and start it again";

/// A server that listens.
pub(crate) struct ListeningServer {
    runtime: Runtime,
    address: std::net::SocketAddr,
    is_https: bool,
    listening: JoinHandle<io::Result<()>>,
    stop: CancellationToken,
    /// Canceled when every request is answered.
    close: CancellationToken,
    pub(crate) descriptors: DescriptorShares,
    pub(crate) access: AccessMode,
}

impl ListeningServer {
    /// Opens the store, recovers its runs, and listens until `stop` is canceled.
    pub(crate) async fn start(config: &ServerConfig, stop: CancellationToken) -> Result<ListeningServer> {
        prepare_for_scripts(&config.scripts)?;
        let tls = config.tls.listener.clone().map(ServerTls::open).transpose()?.map(Arc::new);
        let is_https = tls.is_some();
        let descriptors = share_descriptors(config.limits.connections)?;
        // The address comes first: a server that cannot listen must not recover runs.
        let listener = TcpListener::bind(config.listen).await.with_context(|| {
            format!("cannot listen on {}: choose another address with --listen", config.listen)
        })?;
        let address = listener.local_addr()?;
        if let Some(redis) = config.queue.redis() {
            // A wrong address is an error now; later Redis may be unreachable for a while.
            redis.connect(|_| ()).await.context("cannot use --queue")?;
        }
        let store = open_store(&config.store, config.durability)
            .await
            .with_context(|| format!("cannot open {}", config.store))?;
        // Before the runtime, which would take over runs.
        let access = access::decide(&*store, config).await?;
        let runtime = Runtime::start_up(store, settings(config)?)
            .await
            .with_context(|| format!("cannot start on {}", config.store))?;
        let options = windlass_server::Options {
            hosts: config.hosts.clone(),
            cors: config.cors.clone(),
            body_bytes_max: config.limits.body_bytes,
            connections_max: descriptors.connections,
            connections_per_address_max: config.limits.connections_per_address,
            trusted_proxies: config.trusted_proxies.clone(),
            examples: crate::dev::built_in_flows()?,
            tls,
            ..Default::default()
        };
        let close = CancellationToken::new();
        let listening =
            tokio::spawn(windlass_server::serve(listener, runtime.clone(), options, close.clone()));
        Ok(ListeningServer { runtime, address, is_https, listening, stop, close, descriptors, access })
    }

    /// The URL of the server.
    pub(crate) fn url(&self) -> String {
        let mut address = self.address;
        // No client can connect to the unspecified address.
        if address.ip().is_unspecified() {
            let here: std::net::IpAddr = match address {
                std::net::SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                std::net::SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            };
            address.set_ip(here);
        }
        let scheme = if self.is_https { "https" } else { "http" };
        format!("{scheme}://{address}")
    }

    /// Serves until `stop` is canceled; then refuses new work, lets open calls end for `drain`, and returns soon after. A
    /// server that stops by itself is an error.
    pub(crate) async fn until_stopped(mut self, drain: Duration) -> Result<()> {
        let broken = tokio::select! {
            () = self.stop.cancelled() => None,
            () = self.runtime.stopped() => Some(anyhow!("{STOPPED_ITSELF}")),
            ended = &mut self.listening => {
                self.runtime.shut_down(Duration::ZERO).await;
                ended?.context("the listener broke")?;
                bail!("the listener ended by itself: start the server again");
            }
        };
        let at_most = if broken.is_some() { Duration::ZERO } else { drain }.saturating_add(STOP_GRACE);
        let ending = async {
            if broken.is_none() {
                // Meanwhile clients are told to try again, and workers still report results.
                self.runtime.shut_down(drain).await;
            }
            self.close.cancel();
            (&mut self.listening).await?.context("the listener broke")
        };
        // The end of the process closes the connections that are left.
        let ended = tokio::time::timeout(at_most, ending).await.unwrap_or(Ok(()));
        broken.map_or(ended, Err)
    }
}

/// Raises the limit of open files, and gives connections the part that calls, scripts and the store leave.
fn share_descriptors(wanted: usize) -> Result<DescriptorShares> {
    let shares = DescriptorShares::of(raise_limit(), wanted).map_err(anyhow::Error::msg)?;
    if shares.connections < wanted {
        tracing::warn!(
            "connections_max is {} and not {wanted}: this process may open {} files, and {} are for calls, scripts and the store; raise the limit (ulimit -n, LimitNOFILE)",
            shares.connections,
            shares.limit,
            shares.reserved(),
        );
    }
    Ok(shares)
}

/// Refuses a user that scripts cannot run as, and hides this process from scripts of its own user.
fn prepare_for_scripts(scripts: &ScriptConfig) -> Result<()> {
    if scripts.policy == ScriptPolicy::Off {
        return Ok(());
    }
    if let (Some(_), Some(reason)) = (&scripts.user, ScriptUser::refusal()) {
        return Err(invalid(reason.to_owned()));
    }
    hide_process().context("cannot hide the environment of the server from scripts")
}

/// Opens a store, and makes it if it does not exist.
pub(crate) async fn open_store(place: &StoreLocation, durability: Durability) -> Result<Arc<dyn Store>> {
    let file = match place.clone() {
        StoreLocation::Database(DatabaseUrl(address)) => {
            if windlass_store::postgres::is_exposed(&address) {
                tracing::warn!(
                    "the connection to the database leaves this machine without encryption: add sslmode=verify-full to its address"
                );
            }
            return Ok(Arc::new(Postgres::open(&address, durability).await?));
        }
        StoreLocation::File(path) => Some(path),
        StoreLocation::Temporary => None,
    };
    let opened = tokio::task::spawn_blocking(move || match file {
        Some(path) => Sqlite::open(path, durability),
        None => Sqlite::temporary(durability),
    });
    let opened = opened.await??;
    for ExposedFile { path, is_narrowed } in opened.exposed_files() {
        let path = path.display();
        if *is_narrowed {
            tracing::warn!(%path, "other users of this machine could open the file: only its owner can from now on");
        } else {
            tracing::warn!(%path, "other users of this machine can open the file, and its rights cannot be changed: run chmod 600 as its owner");
        }
    }
    Ok(Arc::new(opened))
}

fn settings(config: &ServerConfig) -> Result<Settings> {
    let worker_tls = ClientTls { ca: config.tls.worker_ca.clone(), identity: None };
    Ok(Settings {
        worker_tls: Arc::new(worker_tls.config()?),
        redis: config.queue.redis().cloned(),
        name: config.name.clone(),
        scripts: config.scripts.policy.clone(),
        script_launcher: script_exec::command_line(),
        script_limits: config.scripts.limits,
        script_user: config.scripts.user.as_ref().map(|(user, _)| *user),
        scripts_max: config.scripts.at_once,
        allow_worker_net: config.allow_worker_net,
        require_account: config.require_account,
        worker_ttl: config.worker_ttl,
        poll_lease: config.poll_lease,
        worker_refresh: config.worker_refresh,
        call_timeout: config.limits.call_timeout,
        service_calls_max: config.limits.service_calls,
        worker_calls_max: config.limits.worker_calls,
        hot_runs_max: config.limits.hot_runs,
        tree_open_runs_max: config.limits.tree_open_runs,
        tree_runs_max: config.limits.tree_runs,
        flow_open_runs_max: config.limits.flow_open_runs,
        open_runs_max: config.limits.open_runs,
        retain_for: config.limits.retain_for,
        worker_retain_for: config.limits.worker_retain_for,
        empty_queue_retain_for: config.limits.empty_queue_retain_for,
        ..Settings::default()
    })
}
