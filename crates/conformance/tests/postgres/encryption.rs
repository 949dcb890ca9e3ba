//! Encrypted connections to a database.

use windlass_conformance::block_on_tokio;
use windlass_conformance::certificates::TestAuthority;
use windlass_conformance::postgres_server::PostgresServer;
use windlass_conformance::test_directory::TestDirectory;
use windlass_store::{Durability, Postgres, Store, StoreError};

fn open(address: &str) -> Result<(), String> {
    match block_on_tokio(async {
        let store = Postgres::open(address, Durability::Fast).await?;
        store.flows(&windlass_engine::project::Project::DEFAULT, Default::default()).await.map(drop)
    }) {
        Ok(()) => Ok(()),
        Err(StoreError::Unavailable(reason)) => Err(reason.to_string()),
        Err(error) => panic!("{error:?}"),
    }
}

/// An address of this machine that no other process of the tests uses: servers there share the port of PostgreSQL.
fn own_address() -> String {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    format!("127.83.{high}.{low}")
}

/// A server at this address with a certificate for this name; with the file of its authority.
fn encrypted(host: &str, name: &str, directory: &TestDirectory) -> (PostgresServer, String) {
    let authority = TestAuthority::new();
    let (cert, key) = authority.sign(&[name]).write(directory.path());
    PostgresServer::give(&key);
    let settings = [
        format!("listen_addresses={host}"),
        "ssl=on".to_owned(),
        format!("ssl_cert_file={}", cert.display()),
        format!("ssl_key_file={}", key.display()),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let ca = authority.write(directory.path()).display().to_string();
    (PostgresServer::start_with(false, &settings), ca)
}

#[test]
fn a_database_is_encrypted_and_checked_as_the_address_says() {
    let (directory, host) = (TestDirectory::create(), own_address());
    let (server, ca) = encrypted(&host, &host, &directory);
    let database = server.create();
    let address = |query: &str| format!("postgres://postgres@{host}/{database}?{query}");

    open(&address("sslmode=require")).unwrap();
    open(&address("sslmode=prefer")).unwrap();
    open(&address(&format!("sslmode=verify-full&sslrootcert={ca}"))).unwrap();
    let refused = open(&address("sslmode=verify-full")).unwrap_err();
    assert!(refused.contains("certificate"), "{refused}");

    // Every connection of a store is encrypted.
    let address = address(&format!("sslmode=verify-full&sslrootcert={ca}&application_name=encrypted"));
    block_on_tokio(async {
        let store = Postgres::open(&address, Durability::Fast).await.unwrap();
        store.flows(&windlass_engine::project::Project::DEFAULT, Default::default()).await.unwrap();
        let counts = "SELECT count(*) FILTER (WHERE ssl) > 0, count(*) FILTER (WHERE NOT ssl) FROM pg_stat_ssl \
                      JOIN pg_stat_activity USING (pid) WHERE application_name = 'encrypted'";
        assert_eq!(server.ask("postgres", counts).trim(), "t|0");
    });
}

#[test]
fn a_certificate_for_another_name_is_refused_only_by_verify_full() {
    let directory = TestDirectory::create();
    let host = own_address().replace("127.83.", "127.84.");
    let (server, ca) = encrypted(&host, "db.example", &directory);
    let database = server.create();
    let with =
        |mode: &str| open(&format!("postgres://postgres@{host}/{database}?sslmode={mode}&sslrootcert={ca}"));
    with("verify-ca").unwrap();
    let refused = with("verify-full").unwrap_err();
    assert!(refused.contains("not valid for name"), "{refused}");
    // The file has another authority from now on.
    TestAuthority::new().write(directory.path());
    assert!(with("verify-ca").is_err());
}

#[test]
fn a_database_without_tls_is_refused_if_encryption_is_required() {
    let host = own_address().replace("127.83.", "127.85.");
    let server = PostgresServer::start_with(false, &[&format!("listen_addresses={host}")]);
    let database = server.create();
    let refused = open(&format!("postgres://postgres@{host}/{database}?sslmode=require")).unwrap_err();
    assert!(refused.contains("TLS"), "{refused}");
    open(&format!("postgres://postgres@{host}/{database}?sslmode=prefer")).unwrap();
}
