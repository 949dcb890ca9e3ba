//! Keys that all servers of a store share. The first server makes them; no list and no answer shows them.

use std::fmt;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::error::StoreError;

/// Bytes of a key.
const BYTES: usize = 32;

/// A secret of the store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StoreKey([u8; BYTES]);

impl StoreKey {
    pub fn new(bytes: [u8; BYTES]) -> Self {
        StoreKey(bytes)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// A key as a backend keeps it.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, StoreError> {
        let read = bytes.try_into().map(StoreKey);
        read.map_err(|_| StoreError::Corrupt(format!("a key of the store has {} bytes", bytes.len())))
    }
}

/// A key is in no log.
impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreKey")
    }
}
