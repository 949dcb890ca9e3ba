//! The database goes away and comes back while servers work: restarted, killed, and with every connection cut again and
//! again.

use std::time::Duration;

use windlass_conformance::postgres_server::PostgresServer;

use super::load::Load;
use super::{Cluster, says_ready};

/// A server is ready again this soon after its database is.
const BACK: Duration = Duration::from_secs(60);

async fn three_on_a_durable_database() -> Cluster {
    let database = tokio::task::block_in_place(|| PostgresServer::start(true));
    Cluster::on(database, &vec![None; 3]).await
}

/// Every server says that it takes no work, and soon after the database is back that it does.
async fn readiness_goes_and_comes(load: &Load, cluster: &mut Cluster) {
    for client in cluster.clients() {
        says_ready(&client, false).await;
    }
    load.says("nobody is ready");
    tokio::task::block_in_place(|| cluster.database.launch());
    load.says("the database is back");
    for client in cluster.clients() {
        let took = says_ready(&client, true).await;
        assert!(took < BACK, "{took:?}");
    }
    load.says("all are ready");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_restarted_loses_nothing() {
    let mut cluster = three_on_a_durable_database().await;
    let load = Load::begin(&cluster).await;
    for _ in 0..2 {
        load.goes_on(5).await;
        tokio::task::block_in_place(|| {
            cluster.database.stop();
            cluster.database.launch();
        });
        load.says("the database is back");
    }
    load.goes_on(5).await;
    tokio::task::block_in_place(|| cluster.database.stop());
    readiness_goes_and_comes(&load, &mut cluster).await;
    load.goes_on(5).await;
    load.settles(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_killed_loses_nothing() {
    let mut cluster = three_on_a_durable_database().await;
    let load = Load::begin(&cluster).await;
    for _ in 0..3 {
        load.goes_on(5).await;
        tokio::task::block_in_place(|| {
            cluster.database.kill();
            cluster.database.launch();
        });
        load.says("the database is back");
    }
    load.goes_on(5).await;
    tokio::task::block_in_place(|| cluster.database.kill());
    readiness_goes_and_comes(&load, &mut cluster).await;
    load.settles(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_again_and_again_lose_nothing() {
    let cluster = Cluster::start(3).await;
    let load = Load::begin(&cluster).await;
    for nth in 0..20 {
        // At different moments of their work.
        tokio::time::sleep(Duration::from_millis(100 + nth * 37 % 240)).await;
        tokio::task::block_in_place(|| cluster.database.end_connections(&cluster.name));
    }
    load.goes_on(5).await;
    load.settles(&cluster).await;
}
