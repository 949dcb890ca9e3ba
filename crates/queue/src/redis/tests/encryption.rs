//! Encrypted connections to Redis.

use windlass_conformance::certificates::TestAuthority;
use windlass_conformance::test_directory::TestDirectory;

use super::*;

/// An address of this machine that no other process of the tests uses.
fn own_address() -> String {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    format!("127.86.{high}.{low}")
}

#[tokio::test]
async fn redis_is_reached_by_tls_if_its_authority_is_trusted() {
    let (authority, directory, host) = (TestAuthority::new(), TestDirectory::create(), own_address());
    let (cert, key) = authority.sign(&[&host]).write(directory.path());
    let ca = authority.write(directory.path());
    let [cert, key, ca] = [&cert, &key, &ca].map(|path| path.display().to_string());
    let _server = RedisTestServer::start(&[
        "--bind",
        &host,
        "--tls-port",
        "6380",
        "--tls-cert-file",
        &cert,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &ca,
        "--tls-auth-clients",
        "no",
    ]);
    let address = format!("rediss://{host}:6380?ca={ca}");
    let redis = Redis::at(&address).unwrap();
    assert_eq!(redis.address().to_string(), address);
    let connection = redis.connect(|_| ()).await.unwrap();
    connection.apply(&[ready("mail", 1, 7)]).await.unwrap();
    assert_eq!(pop(&connection, &["mail"], 1).await, [7]);
    let untrusting = Redis::at(&format!("rediss://{host}:6380")).unwrap();
    let refused = untrusting.connect(|_| ()).await.err().expect("its authority is unknown");
    assert!(refused.to_string().to_lowercase().contains("certificate"), "{refused}");
    let missing = Redis::at(&format!("rediss://{host}:6380?ca=/no/ca.pem")).unwrap_err();
    assert!(missing.to_string().contains("cannot read /no/ca.pem"), "{missing}");
}
