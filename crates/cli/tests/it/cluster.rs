//! Three servers on one PostgreSQL under load: servers, the database and the network between them fail in turn. Nothing
//! that was acknowledged is lost, nothing happens twice, and every server recovers without help.

mod database;
mod hints;
mod load;
mod network;
mod servers;

use std::time::{Duration, Instant};

use windlass_conformance::postgres_server::PostgresServer;
use windlass_sdk::Client;

use crate::server::{PATIENCE, Server};

/// Servers, and the database that they share. They go before it does.
struct Cluster {
    servers: Vec<Server>,
    database: PostgresServer,
    name: String,
}

impl Cluster {
    async fn start(n: usize) -> Self {
        let database = tokio::task::block_in_place(|| PostgresServer::start(false));
        Cluster::on(database, &vec![None; n]).await
    }

    /// Starts a server for each way to the database: by the network at this host, or without one.
    async fn on(database: PostgresServer, ways: &[Option<String>]) -> Self {
        let name = tokio::task::block_in_place(|| database.create());
        let mut servers = Vec::new();
        for way in ways {
            let address = match way {
                Some(host) => format!("postgres://postgres@{host}/{name}"),
                None => database.address(&name),
            };
            servers.push(Server::start_on(&address, &[]).await);
        }
        Cluster { servers, database, name }
    }

    fn client(&self, nth: usize) -> Client {
        self.servers[nth % self.servers.len()].client()
    }

    fn clients(&self) -> Vec<Client> {
        self.servers.iter().map(Server::client).collect()
    }
}

/// Waits until this server says that it takes work, or that it does not; how long that took.
async fn says_ready(client: &Client, is_ready: bool) -> Duration {
    let begun = Instant::now();
    let wanted = if is_ready { 200 } else { 503 };
    loop {
        let said = client.raw("GET", "/readyz", None).await;
        if matches!(said, Ok((status, _)) if status == wanted) {
            return begun.elapsed();
        }
        assert!(begun.elapsed() < PATIENCE, "it never said {wanted}: {said:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
