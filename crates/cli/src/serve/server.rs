//! A server in this process: its store, its runtime and its listener.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_runtime::{Runtime, Settings};
use windlass_store::sqlite::Sqlite;

use super::config::{Config, Place};

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
        let (place, durability) = (config.store.clone(), config.durability);
        let opened = tokio::task::spawn_blocking(move || match place {
            Place::File(path) => Sqlite::open(path, durability),
            Place::Temporary => Sqlite::temporary(durability),
        });
        let store = opened.await?.with_context(|| format!("cannot open {}", config.store))?;
        let runtime = Runtime::start_up(Arc::new(store), settings(config))
            .await
            .with_context(|| format!("cannot start on {}", config.store))?;
        let options = windlass_server::Options { cors: config.cors.clone(), ..Default::default() };
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

    /// Serves until it is told to stop; then takes nothing new, and lets calls end for so long.
    pub(crate) async fn until_stopped(self, drain: Duration) -> Result<()> {
        self.stop.cancelled().await;
        // Whoever asks meanwhile is told to come back, and workers can still hand in what they have.
        self.runtime.shut_down(drain).await;
        self.close.cancel();
        self.listening.await?.context("the listener broke")
    }
}

fn settings(config: &Config) -> Settings {
    Settings {
        name: config.name.clone(),
        allow_scripts: config.allow_scripts,
        allow_worker_net: config.allow_worker_net,
        worker_ttl: config.worker_ttl,
        worker_refresh: config.worker_refresh,
        ..Settings::default()
    }
}
