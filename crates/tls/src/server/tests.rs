use rcgen::{CertificateParams, KeyPair};

use super::*;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("windlass-tls-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn files(&self) -> ServerTlsFiles {
        ServerTlsFiles { cert: self.0.join("cert.pem"), key: self.0.join("key.pem"), client_ca: None }
    }

    fn write_pair(&self) {
        let (cert, key) = pair();
        fs::write(self.0.join("cert.pem"), cert).unwrap();
        fs::write(self.0.join("key.pem"), key).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn pair() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let cert = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    (cert.pem(), key.serialize_pem())
}

#[test]
fn a_changed_pair_is_read_and_a_broken_one_keeps_the_old() {
    let folder = Folder::new("reload");
    folder.write_pair();
    let tls = ServerTls::open(folder.files()).unwrap();
    let first = tls.current();
    assert!(tls.reload_if_changed().is_none());
    assert!(Arc::ptr_eq(&first, &tls.current()));

    folder.write_pair();
    tls.reload_if_changed().expect("a change").unwrap();
    let second = tls.current();
    assert!(!Arc::ptr_eq(&first, &second));

    fs::write(folder.0.join("key.pem"), pair().1).unwrap();
    let error = tls.reload_if_changed().expect("a change").unwrap_err();
    assert!(matches!(error, TlsError::Pair { .. }), "{error}");
    assert!(tls.reload_if_changed().is_none(), "a broken pair is reported once");
    assert!(tls.reload().is_err());
    fs::remove_file(folder.0.join("cert.pem")).unwrap();
    let error = tls.reload_if_changed().expect("a change").unwrap_err();
    assert!(matches!(error, TlsError::Unreadable { .. }), "{error}");
    assert!(Arc::ptr_eq(&second, &tls.current()));

    folder.write_pair();
    tls.reload_if_changed().expect("a change").unwrap();
    assert!(!Arc::ptr_eq(&second, &tls.current()));
}

#[test]
fn files_without_a_certificate_or_a_key_are_named() {
    let folder = Folder::new("named");
    folder.write_pair();
    let files = folder.files();
    let swapped = ServerTlsFiles { cert: files.key.clone(), key: files.cert.clone(), client_ca: None };
    let error = ServerTls::open(swapped).unwrap_err().to_string();
    assert!(error.contains("key.pem has no certificate: name a PEM file with one"), "{error}");
    let without_key = ServerTlsFiles { key: files.cert.clone(), ..files.clone() };
    let error = ServerTls::open(without_key).unwrap_err().to_string();
    assert!(error.contains("cert.pem has no private key"), "{error}");
    let error = ServerTls::open(ServerTlsFiles { client_ca: Some(files.key.clone()), ..files });
    assert!(error.unwrap_err().to_string().contains("key.pem has no certificate"));
}
