//! Certificates for tests, signed by an authority of their own.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

/// An authority that only tests trust.
pub struct TestAuthority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as PEM.
#[derive(Debug, Clone)]
pub struct TestCertificate {
    pub cert: String,
    pub key: String,
}

impl Default for TestAuthority {
    fn default() -> Self {
        TestAuthority::new()
    }
}

impl TestAuthority {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        TestAuthority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// The certificate of the authority.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Signs a certificate for these names and addresses, for servers and for clients.
    pub fn sign(&self, names: &[&str]) -> TestCertificate {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        TestCertificate { cert: cert.pem(), key: key.serialize_pem() }
    }

    /// Writes the certificate of the authority, and returns its path.
    pub fn write(&self, directory: &Path) -> PathBuf {
        let path = directory.join("ca.pem");
        fs::write(&path, self.pem()).unwrap();
        path
    }
}

impl TestCertificate {
    /// Writes both files, and returns their paths. Only the owner can read the key.
    pub fn write(&self, directory: &Path) -> (PathBuf, PathBuf) {
        let (cert, key) = (directory.join("cert.pem"), directory.join("key.pem"));
        fs::write(&cert, &self.cert).unwrap();
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&key);
        std::io::Write::write_all(&mut file.unwrap(), self.key.as_bytes()).unwrap();
        (cert, key)
    }
}
