//! A server with every feature (test/peers/README.md), over stdio and Streamable HTTP, in both eras. What it offers is JSON that the SDK reads.
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::*;
use rmcp::service::{Peer, RequestContext, SubscriptionContext, SubscriptionSink};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// What all connections share: SDKs make a handler for each.
#[derive(Default)]
struct Shared {
    extra: bool,
    cancelled: HashSet<String>,
    peers: Vec<Peer<RoleServer>>,
    sinks: Vec<SubscriptionSink>,
}

#[derive(Clone, Default)]
struct PeerServer(Arc<Mutex<Shared>>);

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("what the SDK reads")
}

/// A result as the SDK's own constructors make it; the SDK leaves `resultType` out where the era has none.
fn result<T: serde::de::DeserializeOwned>(mut value: Value) -> T {
    value["resultType"] = json!("complete");
    read(value)
}

fn text(said: impl Into<String>) -> CallToolResult {
    result(json!({"content": [{"type": "text", "text": said.into()}]}))
}

fn question(name: &str) -> Option<Value> {
    let form = json!({"type": "object", "properties": {"answer": {"type": "string", "title": "Answer"}}, "required": ["answer"]});
    let what = json!([{"role": "user", "content": {"type": "text", "text": "What?"}}]);
    Some(match name {
        "ask_form" => {
            json!({"method": "elicitation/create", "params": {"mode": "form", "message": "Which answer?", "requestedSchema": form}})
        }
        "ask_url" => {
            json!({"method": "elicitation/create", "params": {"mode": "url", "message": "Please visit", "url": "https://peer.example/visit", "elicitationId": "elicitation-1"}})
        }
        "sample" => {
            json!({"method": "sampling/createMessage", "params": {"messages": what, "maxTokens": 7, "systemPrompt": "Be brief."}})
        }
        "roots" => json!({"method": "roots/list", "params": {}}),
        _ => return None,
    })
}

fn schema(properties: Value, required: Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

impl PeerServer {
    fn tools(&self) -> Vec<Tool> {
        let none = || schema(json!({}), json!([]));
        let integer = json!({"type": "integer"});
        let string = json!({"type": "string"});
        let echo = schema(json!({"text": string, "times": {"type": "integer", "minimum": 1, "maximum": 3}}), json!(["text"]));
        let counted = schema(json!({"n": integer, "list": {"type": "array", "items": integer}}), json!(["n", "list"]));
        let key = || schema(json!({"key": string}), json!(["key"]));
        let mut tools = vec![
            json!({"name": "echo", "title": "Echo", "description": "Says it again.", "inputSchema": echo,
                   "annotations": {"title": "Says it again", "readOnlyHint": true}, "_meta": {"peer.example/kind": "echo"}}),
            json!({"name": "structured", "description": "Structured content.", "inputSchema": schema(json!({"n": integer}), json!(["n"])), "outputSchema": counted}),
            json!({"name": "progress", "description": "Reports progress.", "inputSchema": schema(json!({"steps": integer}), json!(["steps"]))}),
            json!({"name": "wait", "description": "Waits until it is cancelled.", "inputSchema": key()}),
            json!({"name": "cancelled", "description": "Tells whether the call with this key was cancelled.", "inputSchema": key()}),
            json!({"name": "slow", "description": "Takes its time.", "inputSchema": schema(json!({"ms": integer}), json!(["ms"]))}),
            json!({"name": "grow", "description": "Adds a tool, or removes it.", "inputSchema": schema(json!({"remove": {"type": "boolean"}}), json!([]))}),
        ];
        for name in ["blocks", "fail", "refuse", "log", "touch", "ask_form", "ask_url", "sample", "roots"] {
            tools.push(json!({"name": name, "description": format!("Does {name}."), "inputSchema": none()}));
        }
        if self.0.lock().unwrap().extra {
            tools.push(json!({"name": "extra", "description": "Only sometimes there.", "inputSchema": none()}));
        }
        tools.into_iter().map(read).collect()
    }

    /// Tells every connection, in the way of its era.
    async fn tell(&self, uri: Option<&str>) {
        let (peers, sinks) = {
            let mut shared = self.0.lock().unwrap();
            shared.peers.retain(|peer| !peer.is_transport_closed());
            (shared.peers.clone(), shared.sinks.clone())
        };
        for sink in sinks {
            let _ = match uri {
                Some(uri) => sink.notify_resource_updated(uri).await,
                None => sink.notify_tool_list_changed().await,
            };
        }
        for peer in peers {
            let _ = match uri {
                Some(uri) => peer.notify_resource_updated(read(json!({"uri": uri}))).await,
                None => peer.notify_tool_list_changed().await,
            };
        }
    }

    async fn ask(
        &self,
        asked: Value,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if context.protocol_version().is_some_and(|version| version.to_string().as_str() >= "2026") {
            let answer = request.input_responses.as_ref().and_then(|answers| answers.get("question"));
            return Ok(match answer {
                Some(answer) => text(serde_json::to_string(answer).unwrap()).into(),
                None => read::<InputRequiredResult>(json!({"resultType": "input_required", "inputRequests": {"question": asked}})).into(),
            });
        }
        let failed = |error: rmcp::ServiceError| match error {
            rmcp::ServiceError::McpError(error) => error,
            other => ErrorData::internal_error(other.to_string(), None),
        };
        let params = asked["params"].clone();
        let answer = match asked["method"].as_str().unwrap() {
            "elicitation/create" => serde_json::to_string(&context.peer.create_elicitation(read(params)).await.map_err(failed)?),
            "sampling/createMessage" => serde_json::to_string(&context.peer.create_message(read(params)).await.map_err(failed)?),
            _ => serde_json::to_string(&context.peer.list_roots().await.map_err(failed)?),
        };
        Ok(text(answer.unwrap()).into())
    }

    async fn report(&self, context: &RequestContext<RoleServer>, progress: f64, total: Option<f64>, message: String) {
        let Some(token) = context.meta.get_progress_token() else { return };
        let mut params = json!({"progressToken": token, "progress": progress, "message": message});
        if let Some(total) = total {
            params["total"] = json!(total);
        }
        let _ = context.peer.notify_progress(read(params)).await;
    }
}

impl ServerHandler for PeerServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true},
            "prompts": {"listChanged": true}, "logging": {}, "completions": {}});
        let mut info = ServerConfig::new(read(capabilities)).with_server_info(Implementation::new("rust-peer", "1.0.0"));
        info.instructions = Some("A peer written in Rust.".into());
        info
    }

    async fn on_initialized(&self, context: rmcp::service::NotificationContext<RoleServer>) {
        self.0.lock().unwrap().peers.push(context.peer);
    }

    async fn list_tools(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.clone().unwrap_or_default();
        let number = |name: &str| arguments.get(name).and_then(Value::as_u64);
        let key = arguments.get("key").and_then(Value::as_str).unwrap_or("").to_string();
        if let Some(asked) = question(&request.name) {
            return self.ask(asked, &request, &context).await;
        }
        let result = match request.name.as_ref() {
            "echo" => match arguments.get("text").and_then(Value::as_str) {
                Some(said) => text(vec![said; number("times").unwrap_or(1) as usize].join(" ")),
                None => return Err(ErrorData::invalid_params("text is missing", None)),
            },
            "structured" => {
                let n = number("n").unwrap_or(0);
                CallToolResult::structured(json!({"n": n, "list": (0..n).collect::<Vec<_>>()}))
            }
            "blocks" => result(json!({"content": [
                {"type": "text", "text": "plain ünïcode \u{2028} text", "annotations": {"audience": ["user"], "priority": 0.5}},
                {"type": "image", "data": PNG, "mimeType": "image/png"},
                {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "peer://text", "name": "text", "mimeType": "text/plain", "description": "A link"},
                {"type": "resource", "resource": {"uri": "peer://text", "mimeType": "text/plain", "text": "embedded"}},
                {"type": "resource", "resource": {"uri": "peer://blob", "mimeType": "application/octet-stream", "blob": "AAEC"}}
            ], "_meta": {"peer.example/blocks": 6}})),
            "fail" => result(json!({"content": [{"type": "text", "text": "it failed"}], "isError": true})),
            "refuse" => return Err(ErrorData::new(ErrorCode(-31999), "refused", Some(json!({"why": "because", "n": [1, 2]})))),
            "progress" => {
                let steps = number("steps").unwrap_or(0);
                for step in 1..=steps {
                    self.report(&context, step as f64, Some(steps as f64), format!("step {step}")).await;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                text("reported")
            }
            "log" => {
                for level in ["debug", "info", "warning", "error"] {
                    let params = json!({"level": level, "logger": "peer", "data": {"text": format!("at {level}")}});
                    let _ = context.peer.notify_logging_message(read(params)).await;
                }
                text("logged")
            }
            "wait" => {
                self.report(&context, 1.0, None, "waiting".into()).await;
                tokio::select! {
                    _ = context.ct.cancelled() => {
                        self.0.lock().unwrap().cancelled.insert(key);
                        text("cancelled")
                    }
                    _ = tokio::time::sleep(Duration::from_secs(30)) => text("waited"),
                }
            }
            "cancelled" => {
                let mut found = false;
                for _ in 0..10 {
                    found = self.0.lock().unwrap().cancelled.contains(&key);
                    if found {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                text(if found { "cancelled" } else { "not cancelled" })
            }
            "slow" => {
                tokio::time::sleep(Duration::from_millis(number("ms").unwrap_or(0))).await;
                text("done")
            }
            "grow" => {
                self.0.lock().unwrap().extra = arguments.get("remove") != Some(&json!(true));
                self.tell(None).await;
                text("grown")
            }
            "touch" => {
                self.tell(Some("peer://watched")).await;
                text("touched")
            }
            "extra" if self.0.lock().unwrap().extra => text("extra"),
            _ => return Err(ErrorData::invalid_params(format!("Unknown tool: {}", request.name), None)),
        };
        Ok(result.into())
    }

    async fn list_resources(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListResourcesResult, ErrorData> {
        Ok(result(json!({"resources": [
            {"uri": "peer://text", "name": "text", "title": "Text", "description": "A text", "mimeType": "text/plain"},
            {"uri": "peer://blob", "name": "blob", "mimeType": "application/octet-stream", "size": 5},
            {"uri": "peer://watched", "name": "watched", "mimeType": "text/plain"}
        ]})))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(result(json!({"resourceTemplates": [
            {"uriTemplate": "peer://items/{id}", "name": "item", "title": "Item", "description": "One item", "mimeType": "application/json"}
        ]})))
    }

    async fn read_resource(&self, request: ReadResourceRequestParams, _: RequestContext<RoleServer>) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let contents = match uri {
            "peer://text" => json!({"uri": uri, "mimeType": "text/plain", "text": "the text\r\n\tünïcode"}),
            "peer://blob" => json!({"uri": uri, "mimeType": "application/octet-stream", "blob": "AAECAwQ="}),
            "peer://watched" => json!({"uri": uri, "mimeType": "text/plain", "text": "watched"}),
            _ => match uri.strip_prefix("peer://items/") {
                Some(id) => json!({"uri": uri, "mimeType": "application/json", "text": json!({"id": id}).to_string()}),
                None => return Err(ErrorData::resource_not_found("not there", Some(json!({"uri": uri})))),
            },
        };
        Ok(result::<ReadResourceResult>(json!({"contents": [contents]})).into())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.0.lock().unwrap().sinks.push(context.sink().clone());
        context.cancelled().await;
        Ok(())
    }

    async fn list_prompts(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListPromptsResult, ErrorData> {
        Ok(result(json!({"prompts": [{"name": "greet", "title": "Greeting", "description": "Greets.",
            "arguments": [{"name": "name", "description": "Whom", "required": true}, {"name": "style"}]}]})))
    }

    async fn get_prompt(&self, request: GetPromptRequestParams, _: RequestContext<RoleServer>) -> Result<GetPromptResponse, ErrorData> {
        if request.name != "greet" {
            return Err(ErrorData::invalid_params(format!("Unknown prompt: {}", request.name), None));
        }
        let arguments = serde_json::to_value(request.arguments).unwrap();
        let said = format!("Greet {} in a {} way.", arguments["name"], arguments["style"]);
        Ok(result::<GetPromptResult>(json!({"description": "Greets.", "messages": [{"role": "user", "content": {"type": "text", "text": said}}]})).into())
    }

    async fn complete(&self, request: CompleteRequestParams, _: RequestContext<RoleServer>) -> Result<CompleteResult, ErrorData> {
        let found: Vec<_> = ["alice", "albert", "bob"].into_iter().filter(|one| one.starts_with(&request.argument.value)).collect();
        Ok(result(json!({"completion": {"values": found, "total": found.len(), "hasMore": false}})))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }
}

pub async fn serve(transport: &str, port: Option<&str>) {
    let server = PeerServer::default();
    if transport == "stdio" {
        let running = server.serve(rmcp::transport::stdio()).await.expect("a host that speaks");
        let _ = running.waiting().await;
        return;
    }
    let service: StreamableHttpService<PeerServer, LocalSessionManager> =
        StreamableHttpService::new(move || Ok(server.clone()), Default::default(), StreamableHttpServerConfig::default());
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{}", port.unwrap())).await.expect("a free port");
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await.expect("served");
}
