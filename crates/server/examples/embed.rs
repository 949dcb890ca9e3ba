//! A program with Windlass inside: a server on a store of its own, and a node type that is performed in this process.
//!
//! `image_generation` gives a picture to a provider, and is suspended with the provider's number as its memo. It is
//! asked again until the picture is there. Nothing waits meanwhile: a server that is killed goes on where it was.
//!
//!     cargo run -p windlass-server --example embed

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_runtime::calls::function::{FunctionAnswer, FunctionCall, Functions};
use windlass_runtime::{Runtime, Settings};
use windlass_sdk::Client;
use windlass_sdk::contract::{FlowRequest, RunDetail, RunRequest};
use windlass_store::sqlite::{Durability, Sqlite};

/// A slow picture service: by key, how often each picture was polled.
#[derive(Clone, Default)]
pub struct Provider(Arc<Mutex<BTreeMap<String, u32>>>);

impl Provider {
    /// Takes an order. The same key is the same order, however often it comes.
    fn order(&self, key: &str, prompt: &str) -> Result<String, String> {
        if prompt.is_empty() {
            return Err("there is nothing to draw: give a prompt".to_owned());
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key.to_owned()).or_default();
        Ok(key.to_owned())
    }

    /// The picture, when it is ready.
    fn picture(&self, order: &str) -> Option<String> {
        let mut orders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let n_looks = orders.entry(order.to_owned()).or_default();
        *n_looks += 1;
        (*n_looks > 2).then(|| format!("asset://pictures/{n_looks}.png"))
    }
}

/// The handler: done, suspended or failed.
pub async fn image_generation(provider: Provider, call: FunctionCall) -> FunctionAnswer {
    let recheck = Some(Duration::from_millis(200));
    let Some(memo) = &call.memo else {
        let prompt = call.params.get("prompt").and_then(Value::as_str).unwrap_or_default();
        return match provider.order(&call.key, prompt) {
            Ok(order) => FunctionAnswer::Suspended { memo: json!({ "order": order }), recheck },
            Err(reason) => FunctionAnswer::refused(reason),
        };
    };
    match provider.picture(memo["order"].as_str().unwrap_or_default()) {
        Some(url) => FunctionAnswer::Done(json!({ "type": "image", "urls": [url] })),
        None => FunctionAnswer::Suspended { memo: (**memo).clone(), recheck },
    }
}

/// A flow that uses the node type: nothing in it says that it is performed here.
pub fn picture_to_film() -> Value {
    json!({
        "nodes": [
            { "id": "start", "type": "start", "name": "开始" },
            { "id": "img_gen", "type": "image_generation", "name": "生成图片", "config": { "prompt": "$var.prompt" } },
            { "id": "end", "type": "end", "name": "结束", "config": { "outputs": [
                { "name": "picture", "source": "$node.img_gen.output.urls[0]" }] } }
        ],
        "edges": [{ "source": "start", "target": "img_gen" }, { "source": "img_gen", "target": "end" }],
        "variables": { "prompt": { "type": "string", "defaultValue": "" } }
    })
}

/// Serves until `stop` on a free port; answers with the address.
pub async fn serve(stop: CancellationToken) -> Result<(String, Runtime), Box<dyn Error>> {
    let provider = Provider::default();
    let functions = Functions::built_in()
        .register("image_generation", move |call| image_generation(provider.clone(), call));
    // A real program opens a file: `Sqlite::open("windlass.db", Durability::Strict)`.
    let store = Sqlite::temporary(Durability::Fast)?;
    let settings = Settings { functions, ..Settings::default() };
    let runtime = Runtime::start_up(Arc::new(store), settings).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(windlass_server::serve(listener, runtime.clone(), Default::default(), stop));
    Ok((url, runtime))
}

/// Publishes the flow, runs it once with this prompt, and answers with the run.
pub async fn run_once(url: &str, prompt: &str) -> Result<RunDetail, Box<dyn Error>> {
    let client = Client::new(url)?;
    let name = format!("picture of {prompt}");
    let flow =
        FlowRequest { name: name.clone(), definition: Some(picture_to_film()), ..FlowRequest::default() };
    client.flows().create(&flow).await?;
    let variables = json!({ "prompt": prompt }).as_object().cloned();
    let started = client.runs().start(&name, &RunRequest { variables, ..RunRequest::default() }).await?;
    let ended = client.runs().wait(&started.id, Some(Duration::from_secs(30))).await?;
    ended.ok_or_else(|| format!("{} did not end in time", started.id).into())
}

#[allow(
    clippy::print_stdout,
    dead_code,
    reason = "this is what it is for, and the test that runs the rest has its own"
)]
#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let stop = CancellationToken::new();
    let (url, runtime) = serve(stop.clone()).await?;
    let run = run_once(&url, "a harbour at dawn").await?;
    println!("{} {}", run.summary.status.word(), run.result.unwrap_or_default());
    runtime.shut_down(Duration::from_secs(5)).await;
    stop.cancel();
    Ok(())
}
