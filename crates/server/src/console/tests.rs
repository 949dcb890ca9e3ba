use std::fs;
use std::path::{Path, PathBuf};

use axum::body::{Body, to_bytes};
use tower::ServiceExt;

use super::*;
use crate::problem::Code as ErrorCode;

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

async fn request_with(path: &str, headers: &[(axum::http::HeaderName, &str)]) -> Response {
    let mut request = axum::http::Request::get(path);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    routes().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

async fn text(response: Response) -> String {
    String::from_utf8(to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec()).unwrap()
}

/// All files below a path; installed packages are no sources.
fn files_below(path: &Path, found: &mut Vec<PathBuf>) {
    if path.ends_with("node_modules") {
        return;
    }
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            files_below(&entry.unwrap().path(), found);
        }
    } else if path.is_file() {
        found.push(path.to_owned());
    }
}

/// The digest that `./x ui` writes: over the lines `<sha256 of the file>  <path>`, sorted by path.
fn digest_of_sources() -> String {
    let root = checkout();
    let mut files = Vec::new();
    for source in ["ui/src", "ui/public", "ui/docs-build", "docs"] {
        files_below(&root.join(source), &mut files);
    }
    for entry in fs::read_dir(root.join("ui")).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_config = name.starts_with("tsconfig") && name.ends_with(".json");
        if is_config
            || ["index.html", "package.json", "package-lock.json", "vite.config.ts"].contains(&name.as_str())
        {
            files.push(path);
        }
    }
    let mut lines: Vec<(String, String)> = Vec::new();
    for file in files {
        let name = file.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        if name.starts_with("docs/") && !name.ends_with(".md") {
            continue;
        }
        let digest = Sha256::digest(fs::read(&file).unwrap());
        lines.push((name, digest.iter().map(|byte| format!("{byte:02x}")).collect()));
    }
    lines.sort();
    let all: String = lines.iter().map(|(name, digest)| format!("{digest}  {name}\n")).collect();
    Sha256::digest(all.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_built_console_belongs_to_its_sources() {
    let noted =
        fs::read_to_string(checkout().join("crates/server/ui-dist/.source-sha256")).unwrap_or_default();
    assert_eq!(
        noted.trim(),
        digest_of_sources(),
        "the built console is older than its sources or the documents: run ./x ui and commit crates/server/ui-dist"
    );
}

#[test]
fn embedded_files_are_small() {
    let total: usize =
        EMBEDDED.iter().filter(|(name, _)| !name.starts_with("docs/")).map(|(_, bytes)| bytes.len()).sum();
    assert!(total <= 600 << 10, "{total} bytes of the console are embedded");
}

#[tokio::test]
async fn pages_of_the_console_are_the_shell_and_unknown_files_are_not() {
    for page in ["/ui", "/ui/", "/ui/runs/run_1", "/ui/flows/a"] {
        let response = request_with(page, &[]).await;
        assert_eq!(response.status(), StatusCode::OK, "{page}");
        assert_eq!(response.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(response.headers()[CACHE_CONTROL], "no-cache");
        let policy = response.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("script-src 'self';") && !policy.contains("unsafe-eval"), "{policy}");
        assert!(text(response).await.contains("<script"), "{page}");
    }
    for file in ["/ui/assets/none.js", "/ui/none.png", "/ui/assets/none", "/docs/none", "/docs/none.css"] {
        assert_eq!(request_with(file, &[]).await.status(), StatusCode::NOT_FOUND, "{file}");
    }
}

#[tokio::test]
async fn a_file_is_compressed_unpacked_or_known() {
    let plain = request_with("/ui/", &[]).await;
    assert!(plain.headers().get(CONTENT_ENCODING).is_none());
    let etag = plain.headers()[ETAG].to_str().unwrap().to_owned();
    let plain = text(plain).await;
    let packed = request_with("/ui/", &[(ACCEPT_ENCODING, "br, gzip;q=0.5")]).await;
    assert_eq!(packed.headers()[CONTENT_ENCODING], "gzip");
    let bytes = to_bytes(packed.into_body(), usize::MAX).await.unwrap();
    let mut unpacked = String::new();
    GzDecoder::new(&bytes[..]).read_to_string(&mut unpacked).unwrap();
    assert_eq!(unpacked, plain);
    for refused in ["gzip;q=0", "br", "*;q=0"] {
        let response = request_with("/ui/", &[(ACCEPT_ENCODING, refused)]).await;
        assert!(response.headers().get(CONTENT_ENCODING).is_none(), "{refused}");
    }
    for tags in [etag.as_str(), "\"x\", *", &format!("\"x\",{etag}")] {
        let known = request_with("/ui/", &[(IF_NONE_MATCH, tags)]).await;
        assert_eq!(known.status(), StatusCode::NOT_MODIFIED, "{tags}");
        assert_eq!(known.headers()[ETAG].to_str().unwrap(), etag);
        assert!(text(known).await.is_empty());
    }
    assert_eq!(request_with("/ui/", &[(IF_NONE_MATCH, "\"x\"")]).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn every_error_code_has_its_anchor_in_the_documents() {
    let page = text(request_with("/docs/errors", &[]).await).await;
    for code in ErrorCode::ALL {
        assert!(page.contains(&format!("id=\"{}\"", code.word())), "{}", code.word());
    }
}

#[tokio::test]
async fn the_documents_have_an_index_and_a_search() {
    let index = text(request_with("/docs", &[]).await).await;
    assert!(index.contains("href=\"/docs/queues\"") && index.contains("search.js"), "{index:.400}");
    let found = request_with("/docs/search.json", &[]).await;
    assert_eq!(found.headers()[CONTENT_TYPE], "application/json");
    let pages: serde_json::Value = serde_json::from_str(&text(found).await).unwrap();
    assert!(pages.as_array().is_some_and(|pages| pages.len() > 20), "{pages:.200}");
    let reference = text(request_with("/docs/api", &[]).await).await;
    assert!(reference.contains("/docs/assets/"), "{reference:.400}");
    assert!(!reference.contains("http://") && !reference.contains("https://"), "{reference:.400}");
}

#[tokio::test]
async fn a_browser_gets_the_shell_for_an_unknown_path_and_other_clients_do_not() {
    let asked = |path: &str, accept: &str| {
        fallback(&axum::http::Request::get(path).header(ACCEPT, accept).body(Body::empty()).unwrap())
    };
    let browser = "text/html,application/xhtml+xml,*/*;q=0.8";
    assert!(asked("/runs/run_1", browser).is_some());
    for (path, accept) in
        [("/runs/run_1", "*/*"), ("/api/v1/none", browser), ("/api", browser), ("/x.js", browser)]
    {
        assert!(asked(path, accept).is_none(), "{path} {accept}");
    }
    let post = axum::http::Request::post("/runs").header(ACCEPT, browser).body(Body::empty()).unwrap();
    assert!(fallback(&post).is_none());
}
