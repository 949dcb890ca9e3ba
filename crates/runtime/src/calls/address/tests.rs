use super::*;

const CLOSED: AddressPolicy = AddressPolicy { private: false };
const OPEN: AddressPolicy = AddressPolicy { private: true };

/// Called under any settings.
const ALWAYS: &[&str] = &[
    "http://127.0.0.1:9001",
    "http://127.0.0.1:9001/",
    "http://127.9.8.7",
    "http://localhost:9001",
    "http://[::1]:9001",
    "http://[::ffff:127.0.0.1]:9001",
    "http://2130706433:9001",
    "http://0x7f.1:9001",
    "http://0177.0.0.1",
    "http://127.1",
    "HTTP://LOCALHOST:9001/workers/a",
    "http://8.8.8.8",
    "https://127.0.0.1:9001",
    "https://worker.example.com",
    "http://worker.example.com:8080/base",
    "http://172.32.0.1",
    "http://192.169.0.1",
    "http://100.128.0.1",
    "http://[2606:4700::1111]",
    "http://[64:ff9b::808:808]",
    "http://[2002:808:808::1]",
];

/// Called when workers may be in private networks.
const PRIVATE: &[&str] = &[
    "http://10.0.0.5:9001",
    "http://172.16.0.1",
    "http://172.31.255.255:80",
    "http://192.168.1.20:9001",
    "http://100.64.0.1",
    "http://198.18.0.1",
    "http://167772165:9001",
    "http://0xa.0.0.5",
    "http://012.0.0.5",
    "http://[fd12:3456::1]:9001",
    "http://[fc00::1]",
    "http://[fec0::1]",
    "http://[::ffff:10.0.0.5]",
    "http://[::ffff:c0a8:114]:9001",
    "http://[64:ff9b::a00:5]",
    "http://[2002:a00:5::1]",
    "http://[::10.0.0.5]",
];

/// Never called.
const NEVER: &[&str] = &[
    "http://169.254.169.254/latest",
    "http://169.254.0.1",
    "http://2852039166",
    "http://0xa9fea9fe",
    "http://169.254.169.254./",
    "http://%31%36%39.254.169.254",
    "http://１６９.254.169.254",
    "http://0251.0376.0251.0376",
    "http://0xa9.254.0251.254",
    "http://[::ffff:169.254.169.254]",
    "http://[::ffff:a9fe:a9fe]",
    "http://[::169.254.169.254]",
    "http://[64:ff9b::a9fe:a9fe]",
    "http://[64:ff9b:1::1]",
    "http://[2002:a9fe:a9fe::1]",
    "http://[2001:0:1::1]",
    "http://[64:ff9b::7f00:1]",
    "http://[::127.0.0.1]",
    "http://[fe80::1]",
    "http://[febf::1]",
    "http://[fd00:ec2::254]",
    "http://100.100.100.200",
    "http://168.63.129.16",
    "http://192.0.0.192",
    "http://0.0.0.0:9001",
    "http://0",
    "http://0.1.2.3",
    "http://[::]:9001",
    "http://224.0.0.1",
    "http://239.255.255.255",
    "http://255.255.255.255",
    "http://250.1.1.1",
    "http://[ff02::1]",
    "http://192.0.2.1",
    "http://198.51.100.7",
    "http://203.0.113.9",
    "http://[2001:db8::1]",
    "http://[100::1]",
    "http://127.0.0.1:0",
    "http://user@127.0.0.1:9001",
    "http://user:word@127.0.0.1:9001",
    "http://127.0.0.1:9001?x=1",
    "http://127.0.0.1:9001#x",
    "ftp://127.0.0.1",
    "file:///etc/passwd",
    "gopher://127.0.0.1:70",
    "unix:/run/docker.sock",
    "127.0.0.1:9001",
    "//127.0.0.1",
    "http://",
    "http://256.0.0.1",
    "http://127.0.0.1:99999",
    "http://exa mple",
    "",
    "worker",
];

#[test]
fn every_spelling_of_an_address_gets_the_same_verdict() {
    for url in ALWAYS {
        assert!(CLOSED.read(url).is_ok(), "{url}: {:?}", CLOSED.read(url));
    }
    for url in PRIVATE {
        let refused = CLOSED.read(url).expect_err(url);
        assert!(refused.contains("--allow-worker-net"), "{refused}");
        assert!(OPEN.read(url).is_ok(), "{url}: {:?}", OPEN.read(url));
    }
    for url in NEVER {
        assert!(OPEN.read(url).is_err(), "{url}");
    }
}

#[test]
fn a_refusal_names_the_address_and_the_remedy() {
    let refused = OPEN.read("http://[::ffff:a9fe:a9fe]/x").unwrap_err();
    assert_eq!(
        refused,
        "url `http://[::ffff:a9fe:a9fe]/x`: it is a link-local address, which is never called: use another address"
    );
    let refused = OPEN.read(&format!("http://{}", "a".repeat(URL_BYTES_MAX))).unwrap_err();
    assert!(refused.len() < 100, "{refused}");
}

#[tokio::test]
async fn a_name_is_judged_by_its_addresses() {
    assert!(!CLOSED.resolve("localhost").await.unwrap().is_empty());
    // Numbers that are no address to the parser of urls may be one to the system's resolver.
    for (policy, name) in [(CLOSED, "10.0.0.5"), (OPEN, "169.254.169.254"), (OPEN, "0.0.0.0")] {
        let refused = policy.resolve(name).await.unwrap_err();
        assert!(matches!(refused, Unresolved::Forbidden(_)), "{refused:?}");
    }
    assert!(OPEN.resolve("10.0.0.5").await.is_ok());
}

#[tokio::test]
async fn connections_get_no_address_that_may_not_be_called() {
    let forbidden = Resolve::resolve(&CLOSED, "10.0.0.5".parse().unwrap()).await;
    let reason = forbidden.err().unwrap().to_string();
    assert!(reason.contains("--allow-worker-net"), "{reason}");
    let open = Resolve::resolve(&CLOSED, "localhost".parse().unwrap()).await.ok().unwrap();
    assert!(open.into_iter().all(|address| address.ip().is_loopback()));
}
