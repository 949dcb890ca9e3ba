//! Errors when a database cannot be opened.

use windlass_conformance::block_on_tokio;
use windlass_conformance::postgres_server::{PostgresServer, shared};
use windlass_store::{Durability, Postgres, StoreError};

fn refused(address: &str) -> String {
    let error = block_on_tokio(Postgres::open(address, Durability::Fast)).unwrap_err();
    match error {
        StoreError::Unavailable(reason) => reason.to_string(),
        StoreError::Corrupt(reason) | StoreError::Damaged(reason) => reason,
        StoreError::Conflict { .. } | StoreError::Refused(_) => panic!("{error:?}"),
    }
}

fn says(told: &str, words: &[&str]) {
    assert!(words.iter().all(|word| told.contains(word)), "{told}");
}

#[test]
fn a_database_that_is_not_there_is_named_with_the_remedy() {
    let server = shared();
    says(&refused(&server.address("nowhere")), &["nowhere", "does not exist", "createdb"]);
    says(&refused("postgres://me:secret@127.0.0.1:1/x"), &["cannot reach", "127.0.0.1:1/x", "start it"]);
}

#[test]
fn a_user_without_rights_gets_the_name_of_the_missing_right() {
    let server = shared();
    let database = server.create();
    assert!(server.sql("postgres", "CREATE ROLE guest LOGIN"));
    assert!(server.sql(&database, "REVOKE ALL ON SCHEMA public FROM PUBLIC"));
    let address = server.address(&database).replace("postgres@", "guest@");
    says(&refused(&address), &["no schema", "grant"]);
    assert!(server.sql(&database, "GRANT USAGE ON SCHEMA public TO guest"));
    says(&refused(&address), &["permission denied", "grant"]);
    says(
        &refused(&server.address(&database).replace("postgres@", "stranger@")),
        &["stranger", "pg_hba.conf"],
    );
}

#[test]
fn a_database_of_another_program_is_refused_and_stays_as_it_is() {
    let server = shared();
    for table in ["songs (title text)", "migrations (id bigint PRIMARY KEY, applied_at text)"] {
        let database = server.create();
        assert!(server.sql(&database, &format!("CREATE TABLE {table}")));
        let relations = || {
            server.ask(
                &database,
                "SELECT oid, relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY oid",
            )
        };
        let before = relations();
        let told = refused(&server.address(&database));
        let name = table.split(' ').next().unwrap();
        says(&told, &[&database, &format!("`{name}`"), "no tables of Windlass", "createdb", "--store"]);
        assert!(!told.contains('\n'), "{told}");
        assert_eq!(relations(), before);
    }
}

#[test]
fn tables_of_a_newer_program_are_refused() {
    let server = shared();
    let database = server.create_migrated();
    assert!(server.sql(&database, "INSERT INTO migrations VALUES (999, '0999_later', 1)"));
    says(&refused(&server.address(&database)), &["version 999", "upgrade"]);
}

#[test]
fn a_migration_that_was_changed_is_refused() {
    let server = shared();
    let database = server.create_migrated();
    assert!(server.sql(&database, "UPDATE migrations SET checksum = 1 WHERE number = 1"));
    says(&refused(&server.address(&database)), &["migration 1"]);
}

#[test]
fn a_database_in_another_encoding_is_refused() {
    let server = shared();
    let create = "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'";
    assert!(server.sql("postgres", create));
    says(&refused(&server.address("latin")), &["LATIN1", "UTF8"]);
}

#[test]
fn a_server_without_a_free_connection_is_reported_and_opened_later() {
    let settings = ["max_connections=8", "superuser_reserved_connections=0", "max_wal_senders=0"];
    let server = PostgresServer::start_with(false, &settings);
    let address = server.address(&server.create());
    block_on_tokio(async {
        let mut held = Vec::new();
        while let Ok((client, connection)) = tokio_postgres::connect(&address, tokio_postgres::NoTls).await {
            held.push((client, tokio::spawn(connection)));
        }
        assert!((1..=8).contains(&held.len()), "{}", held.len());
        let told = Postgres::open(&address, Durability::Fast).await.unwrap_err();
        let StoreError::Unavailable(reason) = told else { panic!("{told:?}") };
        says(&reason.to_string(), &["too many", "max_connections"]);
        for (client, connection) in held {
            drop(client);
            drop(connection.await);
        }
        // The database ends a connection a moment after its client closed it.
        let begun = std::time::Instant::now();
        while let Err(error) = Postgres::open(&address, Durability::Fast).await {
            assert!(begun.elapsed().as_secs() < 30, "{error:?}");
        }
    });
}

#[test]
fn a_copy_that_cannot_be_written_is_refused() {
    let mut server = PostgresServer::start(false);
    let address = server.address(&server.create());
    block_on_tokio(Postgres::open(&address, Durability::Fast)).unwrap();
    server.demote();
    says(&refused(&address), &["read-only", "name the primary in --store"]);
    says(&refused(&server.address("postgres")), &["read-only", "name the primary in --store"]);
}

#[test]
fn a_wrong_password_is_reported_and_not_printed() {
    let server = PostgresServer::start(false);
    let database = server.create();
    assert!(server.sql("postgres", "CREATE ROLE app_user LOGIN PASSWORD 'right'"));
    assert!(server.sql("postgres", &format!("ALTER DATABASE {database} OWNER TO app_user")));
    server.require_password("app_user");
    let address = |user: &str| server.address(&database).replace("postgres@", user);
    let told = refused(&address("app_user:wrong@"));
    says(&told, &["password authentication failed", "app_user", "pg_hba.conf"]);
    assert!(!told.contains("wrong"), "{told}");
    says(&refused(&address("app_user@")), &["password"]);
    block_on_tokio(Postgres::open(&address("app_user:right@"), Durability::Fast)).unwrap();
}

#[test]
fn a_database_without_a_free_connection_is_reported() {
    let server = PostgresServer::start(false);
    let database = server.create();
    assert!(server.sql("postgres", &format!("ALTER DATABASE {database} CONNECTION LIMIT 0")));
    assert!(server.sql("postgres", "CREATE ROLE guest LOGIN"));
    let address = server.address(&database).replace("postgres@", "guest@");
    says(&refused(&address), &["too many connections", "max_connections"]);
}
