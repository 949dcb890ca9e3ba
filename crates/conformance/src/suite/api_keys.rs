//! API keys.

use windlass_engine::access::Role;
use windlass_engine::access::api_key::{ApiKey, ApiKeyId, RANDOM_BYTES};
use windlass_engine::access::identity::{KeyTerm, WorkScope};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;
use windlass_store::Store;
use windlass_store::api_key::{ApiKeyHash, ApiKeyRow};

use crate::fixture::at;

const HERE: Project = Project::DEFAULT;

/// A key; keys with greater numbers have greater ids.
pub(super) fn key_row(n: u64) -> ApiKeyRow {
    let mut random = [0; RANDOM_BYTES];
    // Two bytes make a character, so small numbers in every second byte keep the order.
    for (place, byte) in random[..16].iter_mut().skip(1).step_by(2).rev().enumerate() {
        *byte = u8::try_from(n / 10_u64.pow(u32::try_from(place).unwrap()) % 10).unwrap();
    }
    let key = ApiKey::new(Role::Worker, &random);
    let services = ["tts", "é\u{0}\""].map(str::to_owned).into();
    ApiKeyRow {
        id: key.id(),
        project: HERE,
        hash: ApiKeyHash::of(&key),
        name: "ann\u{0}é".to_owned(),
        role: Role::Worker,
        may_script: n % 2 == 1,
        scope: WorkScope { services, queues: Default::default() },
        created_at: at(1),
        created_by: "bob".to_owned(),
        term: KeyTerm { expires_at: n.is_multiple_of(2).then_some(at(100)), revoked_at: None },
        used_at: None,
    }
}

async fn found(store: &dyn Store, id: ApiKeyId) -> ApiKeyRow {
    store.api_key(id).await.unwrap().unwrap()
}

async fn listed(store: &dyn Store, project: &Project, after: Option<u64>, limit: usize) -> Vec<ApiKeyId> {
    let rows = store.api_keys(project, after.map(|n| key_row(n).id), limit).await.unwrap();
    rows.into_iter().map(|row| row.id).collect()
}

fn other() -> Project {
    Project::new("other").unwrap()
}

pub async fn a_key_is_found_by_its_id_and_listed_in_its_project(store: &dyn Store) {
    assert!(!store.has_api_keys().await.unwrap());
    assert_eq!(store.api_key(key_row(1).id).await.unwrap(), None);
    for n in [2, 1, 3] {
        assert!(store.create_api_key(&HERE, key_row(n)).await.unwrap());
    }
    assert!(store.create_api_key(&other(), key_row(4)).await.unwrap());
    assert!(store.has_api_keys().await.unwrap());
    for n in 1..=3 {
        assert_eq!(found(store, key_row(n).id).await, key_row(n));
    }
    assert_eq!(found(store, key_row(4).id).await.project, other());
    let ids = |numbers: &[u64]| numbers.iter().map(|n| key_row(*n).id).collect::<Vec<_>>();
    assert_eq!(listed(store, &HERE, None, 9).await, ids(&[1, 2, 3]));
    assert_eq!(listed(store, &HERE, None, 2).await, ids(&[1, 2]));
    assert_eq!(listed(store, &HERE, Some(2), 2).await, ids(&[3]));
    assert_eq!(listed(store, &other(), None, 9).await, ids(&[4]));
}

pub async fn the_id_of_a_key_is_taken_once(store: &dyn Store) {
    assert!(store.create_api_key(&HERE, key_row(1)).await.unwrap());
    let second = ApiKeyRow { name: "eve".to_owned(), role: Role::Admin, ..key_row(1) };
    assert!(!store.create_api_key(&HERE, second.clone()).await.unwrap());
    assert!(!store.create_api_key(&other(), second).await.unwrap());
    assert_eq!(found(store, key_row(1).id).await, key_row(1));
    assert!(store.create_api_key(&HERE, key_row(2)).await.unwrap());
    assert!(!store.rotate_api_key(&HERE, key_row(1).id, at(50), key_row(2)).await.unwrap());
    assert_eq!(found(store, key_row(1).id).await, key_row(1));
}

pub async fn a_key_is_revoked_once_and_in_its_own_project(store: &dyn Store) {
    assert!(store.create_api_key(&HERE, key_row(1)).await.unwrap());
    let id = key_row(1).id;
    assert!(!store.revoke_api_key(&other(), id, at(5)).await.unwrap());
    assert!(!store.revoke_api_key(&HERE, key_row(2).id, at(5)).await.unwrap());
    assert_eq!(found(store, id).await.term.revoked_at, None);
    assert!(store.revoke_api_key(&HERE, id, at(6)).await.unwrap());
    assert!(store.revoke_api_key(&HERE, id, at(7)).await.unwrap());
    assert_eq!(found(store, id).await.term.revoked_at, Some(at(6)));
}

pub async fn a_rotated_key_ends_when_its_successor_begins(store: &dyn Store) {
    for n in [1, 2] {
        assert!(store.create_api_key(&HERE, key_row(n)).await.unwrap());
    }
    let rotate = async |project: &Project, n: u64, ends_at: Timestamp, next: u64| {
        store.rotate_api_key(project, key_row(n).id, ends_at, key_row(next)).await.unwrap()
    };
    assert!(!rotate(&other(), 1, at(50), 3).await);
    assert!(!rotate(&HERE, 9, at(50), 3).await);
    assert!(store.api_key(key_row(3).id).await.unwrap().is_none());
    assert!(rotate(&HERE, 1, at(50), 3).await);
    assert_eq!(found(store, key_row(1).id).await.term.expires_at, Some(at(50)));
    assert_eq!(found(store, key_row(3).id).await, key_row(3));
    // A key that ends sooner by itself keeps its end.
    assert!(rotate(&HERE, 2, at(500), 5).await);
    assert_eq!(found(store, key_row(2).id).await.term.expires_at, Some(at(100)));
    assert!(store.revoke_api_key(&HERE, key_row(3).id, at(6)).await.unwrap());
    assert!(!rotate(&HERE, 3, at(50), 6).await);
    assert!(store.api_key(key_row(6).id).await.unwrap().is_none());
}

pub async fn last_uses_of_keys_only_grow(store: &dyn Store) {
    let ids = [1, 2].map(|n| key_row(n).id);
    for n in [1, 2] {
        assert!(store.create_api_key(&HERE, key_row(n)).await.unwrap());
    }
    store.save_api_key_uses(Vec::new()).await.unwrap();
    store.save_api_key_uses(vec![(ids[1], at(9)), (ids[0], at(5)), (key_row(7).id, at(5))]).await.unwrap();
    store.save_api_key_uses(vec![(ids[0], at(7)), (ids[1], at(3))]).await.unwrap();
    assert_eq!(found(store, ids[0]).await.used_at, Some(at(7)));
    assert_eq!(found(store, ids[1]).await.used_at, Some(at(9)));
}
