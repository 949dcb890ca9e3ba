//! The certificate of the listener, and trust in workers.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use windlass_tls::{ClientTls, ServerTls, ServerTlsFiles};

use super::settings::SettingReader;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TlsArgs {
    /// A PEM file with the certificate of this server and its chain: it listens for https then. Needs --tls-key.
    #[arg(long, value_name = "FILE", env = "WINDLASS_TLS_CERT")]
    tls_cert: Option<String>,
    /// The PEM file with the key of the certificate.
    #[arg(long, value_name = "FILE", env = "WINDLASS_TLS_KEY")]
    tls_key: Option<String>,
    /// A PEM file with authorities: clients without a certificate of theirs are refused.
    #[arg(long, value_name = "FILE", env = "WINDLASS_TLS_CLIENT_CA")]
    tls_client_ca: Option<String>,
    /// A PEM file with authorities of push workers with https, beside those of the system.
    #[arg(long, value_name = "FILE", env = "WINDLASS_TLS_WORKER_CA")]
    tls_worker_ca: Option<String>,
}

/// The files of TLS.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TlsConfig {
    /// The certificate of the listener; `None` = plain HTTP.
    pub(crate) listener: Option<ServerTlsFiles>,
    /// The authorities of push workers, beside those of the system.
    pub(crate) worker_ca: Option<PathBuf>,
}

impl TlsArgs {
    /// Reads the settings, and the files that they name.
    pub(super) fn read(self, settings: &mut SettingReader<'_>) -> TlsConfig {
        let cert = settings.read("tls_cert", self.tls_cert, None, file);
        let key = settings.read("tls_key", self.tls_key, None, file);
        let client_ca = settings.read("tls_client_ca", self.tls_client_ca, None, file);
        let worker_ca = settings.read("tls_worker_ca", self.tls_worker_ca, None, |text| {
            let ca = file(text)?;
            let tls = ClientTls { ca: ca.clone(), identity: None };
            tls.config().map(|_| ca).map_err(|error| error.to_string())
        });
        TlsConfig { listener: listener(settings, cert, key, client_ca), worker_ca }
    }
}

impl TlsConfig {
    /// The settings by their names in the file.
    pub(super) fn show(&self, shown: &mut Value) {
        if let Some(ServerTlsFiles { cert, key, client_ca }) = &self.listener {
            shown["tls_cert"] = json!(cert);
            shown["tls_key"] = json!(key);
            if let Some(client_ca) = client_ca {
                shown["tls_client_ca"] = json!(client_ca);
            }
        }
        if let Some(worker_ca) = &self.worker_ca {
            shown["tls_worker_ca"] = json!(worker_ca);
        }
    }
}

fn file(text: &str) -> Result<Option<PathBuf>, String> {
    if text.is_empty() { Err("it is empty: name a file".to_owned()) } else { Ok(Some(text.into())) }
}

fn listener(
    settings: &mut SettingReader<'_>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    client_ca: Option<PathBuf>,
) -> Option<ServerTlsFiles> {
    match (cert, key) {
        (Some(cert), Some(key)) => {
            let files = ServerTlsFiles { cert, key, client_ca };
            match ServerTls::open(files.clone()) {
                Ok(_) => return Some(files),
                Err(error) => settings.refuse(&error.to_string()),
            }
        }
        (Some(_), None) => settings.refuse("tls_cert needs tls_key: name the file of its key"),
        (None, Some(_)) => settings.refuse("tls_key needs tls_cert: name the file of its certificate"),
        (None, None) if client_ca.is_some() => {
            settings
                .refuse("tls_client_ca has no effect without tls_cert: name a certificate or leave it out");
        }
        (None, None) => {}
    }
    None
}
