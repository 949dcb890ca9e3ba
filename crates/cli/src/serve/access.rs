//! Start-up modes: whether requests need a key, and the refusal to serve other machines without any.

use std::path::Path;

use anyhow::{Context, Result};
use windlass_engine::access::api_key::ApiKey;
use windlass_engine::time::Timestamp;
use windlass_runtime::Settings;
use windlass_runtime::access::add_first_key;
use windlass_store::Store;

use super::config::ServerConfig;
use crate::exit::invalid;
use crate::output;
use crate::session::now_ms;

/// The start of an admin key.
const ADMIN_KEY: &str = "wl_a_";

/// Whether requests need a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessMode {
    /// There are keys, and every request needs one.
    Keys,
    /// There are none: every client of this machine may do everything.
    OpenHere,
    /// There are none, and the operator said that other machines may do everything, too.
    OpenToAll,
}

impl AccessMode {
    /// The mode for the banner.
    pub(crate) fn line(self) -> &'static str {
        match self {
            AccessMode::Keys => "every request needs an API key",
            AccessMode::OpenHere => {
                "open: every program of this machine may do everything; `windlass key create` ends that"
            }
            AccessMode::OpenToAll => "open to the network (no_auth): every client may do everything",
        }
    }
}

/// Writes the first key if the settings name a file with one, and decides about the mode.
pub(super) async fn decide(store: &dyn Store, config: &ServerConfig) -> Result<AccessMode> {
    if let Some(path) = &config.first_key_file {
        let key = first_key(path)?;
        if add_first_key(store, &Settings::default().project, &key, Timestamp(now_ms())).await? {
            output::message(&format!("the first key, {}, was read from {}", key.id(), path.display()));
        }
    }
    let has_keys = store.has_api_keys().await?;
    match (has_keys, config.listen.ip().to_canonical().is_loopback(), config.no_auth) {
        (true, _, true) => Err(invalid(
            "no_auth has no effect: the store has API keys, so every request needs one; leave no_auth out",
        )),
        (true, _, false) => Ok(AccessMode::Keys),
        (false, true, _) => Ok(AccessMode::OpenHere),
        (false, false, true) => Ok(AccessMode::OpenToAll),
        (false, false, false) => Err(invalid(format!(
            "{} can be reached from other machines, and there is no API key: every client could do everything\n  \
             make a key first:     windlass key create --role admin --name me --store {}\n  \
             or serve without one: --no-auth",
            config.listen, config.store
        ))),
    }
}

/// The key in a file. Its text is in no message.
fn first_key(path: &Path) -> Result<ApiKey> {
    let place = || format!("first_key_file: cannot read {}", path.display());
    let text = std::fs::read_to_string(path).with_context(place)?;
    let key = ApiKey::read(text.trim()).filter(|key| key.reveal().starts_with(ADMIN_KEY));
    key.ok_or_else(|| {
        let path = path.display();
        invalid(format!(
            "first_key_file: {path} holds no admin key: write one with `windlass key generate > {path}`"
        ))
    })
}
