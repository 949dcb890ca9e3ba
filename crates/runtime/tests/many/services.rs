//! Claims by service at servers that hand out queues through Redis.

use std::time::{Duration, Instant};

use windlass_conformance::postgres_server::test_database;
use windlass_conformance::redis_server::RedisTestServer;
use windlass_engine::job::JobSpec;
use windlass_runtime::jobs::ClaimRequest;

use crate::cluster::{PATIENCE, SOON, claim};
use crate::redis::on_postgres;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_its_own_server_reads_back_is_handed_out_at_once() {
    let database = test_database().await;
    let redis = tokio::task::block_in_place(|| RedisTestServer::start(&[]));
    let servers = on_postgres(&database.address, &redis).await;
    // The last server has known from its start that it shares the store.
    let server = &servers[1];
    let begun = Instant::now();
    for nth in 0..12 {
        // No claim has asked for the service before: the server does not keep the job, and reads it when a claim does.
        let service = format!("rare {nth}");
        let made = server.jobs().create_job(JobSpec::new(service.clone(), "q")).await.unwrap().job;
        let claim = ClaimRequest { queues: Vec::new(), services: vec![service], ..claim("", 1, PATIENCE) };
        assert_eq!(server.jobs().claim(claim).await.unwrap()[0].job, made);
    }
    // Half of them would be left to the other server for half a second, and looked for a second later.
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    for server in &servers {
        server.shut_down(Duration::from_secs(1)).await;
    }
}
