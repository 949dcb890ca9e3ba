//! Unique ids of workers.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Characters of the name of this machine that are kept.
const HOST_CHARS: usize = 40;

/// An id that no other worker has: the prefix, this machine, this process, and chance. Machines in containers count
/// their processes from one, and may be called the same.
pub fn unique_id(prefix: &str) -> String {
    let chance = RandomState::new().build_hasher().finish();
    format!("{prefix}-{}-{}-{:08x}", host(), std::process::id(), chance & 0xffff_ffff)
}

fn host() -> String {
    let filed = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let said = || std::env::var("HOSTNAME").ok();
    plain(&filed().or_else(said).unwrap_or_default())
}

/// A name as it can stand in an id.
fn plain(name: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let plain: String = name.trim().chars().filter(is_plain).take(HOST_CHARS).collect();
    if plain.is_empty() { "host".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ids_are_never_the_same() {
        let (one, other) = (unique_id("worker"), unique_id("worker"));
        assert_ne!(one, other);
        assert!(one.starts_with("worker-") && one.contains(&format!("-{}-", std::process::id())), "{one}");
    }

    #[test]
    fn names_of_machines_are_made_plain() {
        assert_eq!(plain("node 1/é\n"), "node1");
        assert_eq!(plain("\n"), "host");
        assert_eq!(plain(&"x".repeat(500)).len(), HOST_CHARS);
    }
}
