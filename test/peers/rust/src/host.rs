//! A host on rmcp over stdio and Streamable HTTP that finds the era, and its command loop (test/peers/README.md): one JSON command per line on
//! stdin, one answer per line on stdout. A cancelled command is a dropped future, of which the SDK tells the server.
use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, RunningService, ServiceError};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::task::AbortHandle;

fn emit(message: Value) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{message}");
    let _ = out.flush();
}

fn event(kind: &str, params: Value) {
    emit(json!({"event": kind, "params": params}));
}

fn asked(method: &str, params: Value) {
    emit(json!({"event": "asked", "method": method, "params": params}));
}

fn plain<T: serde::Serialize>(value: T) -> Value {
    serde_json::to_value(value).expect("what the SDK writes")
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("what the SDK reads")
}

/// How a command fails.
enum Failed {
    Unsupported,
    Service(ServiceError),
    Other(&'static str, String),
}

impl From<ServiceError> for Failed {
    fn from(error: ServiceError) -> Self {
        Failed::Service(error)
    }
}

fn failure(failed: Failed) -> Value {
    match failed {
        Failed::Unsupported => json!({"kind": "unsupported"}),
        Failed::Service(ServiceError::McpError(error)) => plain(error),
        Failed::Service(ServiceError::Timeout { .. }) => json!({"kind": "timeout"}),
        Failed::Service(error) => json!({"kind": "error", "message": error.to_string()}),
        Failed::Other(kind, message) => json!({"kind": kind, "message": message}),
    }
}

struct Host {
    capable: bool,
}

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        let capabilities =
            if self.capable { json!({"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {}}) } else { json!({}) };
        let mut info = ClientConfig::default();
        info.capabilities = read(capabilities);
        info.client_info = Implementation::new("rust-peer", "1.0.0");
        info
    }

    async fn create_elicitation(&self, request: ElicitRequestParams, _: RequestContext<RoleClient>) -> Result<ElicitResult, ErrorData> {
        let params = plain(&request);
        let answer = if params["mode"] == "url" { json!({"action": "accept"}) } else { json!({"action": "accept", "content": {"answer": "yes"}}) };
        asked("elicitation/create", params);
        Ok(read(answer))
    }

    async fn create_message(&self, params: CreateMessageRequestParams, _: RequestContext<RoleClient>) -> Result<CreateMessageResult, ErrorData> {
        asked("sampling/createMessage", plain(&params));
        Ok(read(json!({"role": "assistant", "content": {"type": "text", "text": "sampled"}, "model": "peer-model"})))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        asked("roots/list", json!({}));
        Ok(read(json!({"roots": [{"uri": "file:///peer/root", "name": "peer"}]})))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let mut params = plain(params);
        params.as_object_mut().unwrap().remove("progressToken");
        event("progress", params);
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        event("log", plain(params));
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        event("updated", json!({"uri": params.uri}));
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        event("changed", json!({"list": "resources"}));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        event("changed", json!({"list": "tools"}));
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        event("changed", json!({"list": "prompts"}));
    }
}

type Client = RunningService<RoleClient, Host>;

/// One connection: the client, and the streams it listens to in the modern era.
struct Session {
    client: Client,
    modern: bool,
    listening: Mutex<HashMap<String, AbortHandle>>,
}

impl Session {
    /// Follows a subscription until it is aborted, which drops and so cancels it. What it brings passes by the handler.
    async fn listen(&self, key: &str, wanted: Value) -> Result<(), Failed> {
        let mut subscription = self.client.listen(read(wanted)).await?;
        let following = tokio::spawn(async move {
            while let Ok(Some(notification)) = subscription.next().await {
                let message = plain(&notification);
                match message["method"].as_str().unwrap_or("") {
                    "notifications/resources/updated" => event("updated", json!({"uri": message["params"]["uri"]})),
                    "notifications/tools/list_changed" => event("changed", json!({"list": "tools"})),
                    "notifications/prompts/list_changed" => event("changed", json!({"list": "prompts"})),
                    "notifications/resources/list_changed" => event("changed", json!({"list": "resources"})),
                    _ => {}
                }
            }
        });
        self.listening.lock().unwrap().insert(key.into(), following.abort_handle());
        Ok(())
    }

    async fn run(&self, command: Value) -> Result<Value, Failed> {
        let client = &self.client;
        let uri = || command["uri"].as_str().unwrap_or("").to_string();
        let of = |keys: &[&str]| -> Value {
            let found = keys.iter().filter(|key| !command[**key].is_null()).map(|key| (key.to_string(), command[*key].clone()));
            Value::Object(found.collect())
        };
        Ok(match command["do"].as_str().unwrap() {
            "list" => match command["of"].as_str().unwrap() {
                "tools" => plain(client.list_all_tools().await?),
                "resources" => plain(client.list_all_resources().await?),
                "prompts" => plain(client.list_all_prompts().await?),
                _ => plain(client.list_all_resource_templates().await?),
            },
            "call" => {
                let call = client.call_tool(read(of(&["name", "arguments"])));
                match command["timeoutMs"].as_u64() {
                    Some(limit) => match tokio::time::timeout(Duration::from_millis(limit), call).await {
                        Ok(ended) => plain(ended?),
                        Err(_) => return Err(Failed::Other("timeout", String::new())),
                    },
                    None => plain(call.await?),
                }
            }
            "read" => plain(client.read_resource(read(of(&["uri"]))).await?),
            "subscribe" if self.modern => {
                self.listen(&uri(), json!({"resourceSubscriptions": [uri()]})).await?;
                json!({})
            }
            "unsubscribe" if self.modern => {
                if let Some(following) = self.listening.lock().unwrap().remove(&uri()) {
                    following.abort();
                }
                json!({})
            }
            "subscribe" => plain(client.subscribe(read(of(&["uri"]))).await.map(|_| json!({}))?),
            "unsubscribe" => plain(client.unsubscribe(read(of(&["uri"]))).await.map(|_| json!({}))?),
            "prompt" => plain(client.get_prompt(read(of(&["name", "arguments"]))).await?),
            "complete" => plain(client.complete(read(of(&["ref", "argument"]))).await?),
            "level" => plain(client.set_level(read(of(&["level"]))).await.map(|_| json!({}))?),
            _ => return Err(Failed::Unsupported),
        })
    }
}

async fn connect(command: &Value) -> Result<(Session, Value), Failed> {
    let host = Host { capable: command["capable"] == true };
    let mode = ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::V_2026_07_28], legacy_version: None };
    let connected = if command["transport"] == "stdio" {
        let mut program = Command::new(command["command"].as_str().unwrap());
        program.args(command["args"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()));
        let (child, _) = TokioChildProcess::builder(program)
            .stderr(std::process::Stdio::null())
            .spawn()
            .map_err(|error| Failed::Other("spawn", error.to_string()))?;
        host.serve_with_lifecycle(child, mode).await
    } else {
        host.serve_with_lifecycle(StreamableHttpClientTransport::from_uri(command["url"].as_str().unwrap()), mode).await
    };
    let client = connected.map_err(|error| Failed::Other("connect", error.to_string()))?;
    let info = client.peer_info().map(|info| plain(info.as_ref())).unwrap_or_default();
    let modern = info["protocolVersion"].as_str().is_some_and(|version| version >= "2026");
    let session = Session { client, modern, listening: Mutex::default() };
    if modern {
        session.listen("lists", json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true})).await?;
    }
    let mut learnt = json!({});
    for key in ["protocolVersion", "serverInfo", "capabilities", "instructions"] {
        if !info[key].is_null() {
            learnt[key] = info[key].clone();
        }
    }
    Ok((session, learnt))
}

async fn close(session: Arc<Session>) {
    for (_, following) in session.listening.lock().unwrap().drain() {
        following.abort();
    }
    session.client.cancellation_token().cancel();
}

pub async fn serve() {
    let session: Arc<Mutex<Option<Arc<Session>>>> = Arc::default();
    let running: Arc<Mutex<HashMap<u64, AbortHandle>>> = Arc::default();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(command) = serde_json::from_str::<Value>(&line) else { continue };
        let id = command["id"].as_u64().unwrap();
        let (held, known) = (session.clone(), running.clone());
        let task = tokio::spawn(async move {
            let current = held.lock().unwrap().clone();
            match command["do"].as_str().unwrap() {
                "connect" => {
                    let (made, learnt) = connect(&command).await?;
                    *held.lock().unwrap() = Some(Arc::new(made));
                    Ok(learnt)
                }
                "close" => {
                    close(current.unwrap()).await;
                    Ok(Value::Null)
                }
                "cancel" => {
                    if let Some(found) = known.lock().unwrap().get(&command["call"].as_u64().unwrap()) {
                        found.abort();
                    }
                    Ok(Value::Null)
                }
                _ => current.unwrap().run(command).await,
            }
        });
        running.lock().unwrap().insert(id, task.abort_handle());
        let known = running.clone();
        tokio::spawn(async move {
            let ended: Result<Result<Value, Failed>, _> = task.await;
            known.lock().unwrap().remove(&id);
            emit(match ended {
                Ok(Ok(result)) => json!({"id": id, "result": result}),
                Ok(Err(error)) => json!({"id": id, "error": failure(error)}),
                Err(error) if error.is_cancelled() => json!({"id": id, "error": {"kind": "cancelled"}}),
                Err(error) => json!({"id": id, "error": {"kind": "panic", "message": error.to_string()}}),
            });
        });
    }
}
