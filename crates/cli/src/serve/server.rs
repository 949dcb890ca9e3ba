//! A server in this process: its store, its runtime and its listener.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_runtime::{Runtime, Settings};
use windlass_store::{Postgres, Sqlite, Store};

use super::config::{Address, Config, Place};

/// How long the end may take beyond the time that calls are given.
const LAST_WORDS: Duration = Duration::from_secs(5);
const STOPPED_ITSELF: &str = "the server stopped by itself, because another one uses its store or the store is lost: \
     see the messages above, and start it again when that is mended";

/// A server that listens.
pub(crate) struct Server {
    runtime: Runtime,
    address: std::net::SocketAddr,
    listening: JoinHandle<io::Result<()>>,
    stop: CancellationToken,
    /// Cancelled when nothing is left to be answered.
    close: CancellationToken,
}

impl Server {
    /// Opens the store, takes over what was left behind, and listens until `stop` is cancelled.
    pub(crate) async fn start(config: &Config, stop: CancellationToken) -> Result<Server> {
        // First the address: who cannot listen should not wake what is stored.
        let listener = TcpListener::bind(config.listen).await.with_context(|| {
            format!("cannot listen on {}: choose another address with --listen", config.listen)
        })?;
        let address = listener.local_addr()?;
        if let Some(redis) = config.queue.redis() {
            // What is wrong with it is said now; later it may be away.
            redis.connect(|_| ()).await.context("cannot use --queue")?;
        }
        let store = open(config).await.with_context(|| format!("cannot open {}", config.store))?;
        let runtime = Runtime::start_up(store, settings(config))
            .await
            .with_context(|| format!("cannot start on {}", config.store))?;
        let options = windlass_server::Options {
            cors: config.cors.clone(),
            body_bytes_max: config.limits.body_bytes,
            connections_max: config.limits.connections,
            ..Default::default()
        };
        let close = CancellationToken::new();
        let listening =
            tokio::spawn(windlass_server::serve(listener, runtime.clone(), options, close.clone()));
        Ok(Server { runtime, address, listening, stop, close })
    }

    /// Where it is reached.
    pub(crate) fn url(&self) -> String {
        let mut address = self.address;
        // An address that means all of them is no place to go to.
        if address.ip().is_unspecified() {
            let here: std::net::IpAddr = match address {
                std::net::SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                std::net::SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            };
            address.set_ip(here);
        }
        format!("http://{address}")
    }

    /// Serves until it is told to stop; then takes nothing new, lets calls end for so long, and comes back no more than
    /// a moment later. A server that stops by itself is an error.
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
        let at_most = if broken.is_some() { Duration::ZERO } else { drain }.saturating_add(LAST_WORDS);
        let ending = async {
            if broken.is_none() {
                // Whoever asks meanwhile is told to come back, and workers can still hand in what they have.
                self.runtime.shut_down(drain).await;
            }
            self.close.cancel();
            (&mut self.listening).await?.context("the listener broke")
        };
        // Connections that do not end are cut by the end of the process.
        let ended = tokio::time::timeout(at_most, ending).await.unwrap_or(Ok(()));
        broken.map_or(ended, Err)
    }
}

async fn open(config: &Config) -> Result<Arc<dyn Store>> {
    let (place, durability) = (config.store.clone(), config.durability);
    let file = match place {
        Place::Database(Address(address)) => {
            return Ok(Arc::new(Postgres::open(&address, durability).await?));
        }
        Place::File(path) => Some(path),
        Place::Temporary => None,
    };
    let opened = tokio::task::spawn_blocking(move || match file {
        Some(path) => Sqlite::open(path, durability),
        None => Sqlite::temporary(durability),
    });
    Ok(Arc::new(opened.await??))
}

fn settings(config: &Config) -> Settings {
    let is_alone = match &config.store {
        Place::File(_) | Place::Temporary => true,
        Place::Database(_) => false,
    };
    Settings {
        is_alone,
        redis: config.queue.redis().cloned(),
        name: config.name.clone(),
        allow_scripts: config.allow_scripts,
        allow_worker_net: config.allow_worker_net,
        worker_ttl: config.worker_ttl,
        worker_refresh: config.worker_refresh,
        call_timeout: config.limits.call_timeout,
        service_calls_max: config.limits.service_calls,
        worker_calls_max: config.limits.worker_calls,
        hot_runs_max: config.limits.hot_runs,
        retain_for: config.limits.retain_for,
        ..Settings::default()
    }
}
