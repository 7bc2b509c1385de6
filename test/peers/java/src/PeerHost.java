import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.McpSyncClient;
import io.modelcontextprotocol.client.transport.HttpClientSseClientTransport;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.client.transport.ServerParameters;
import io.modelcontextprotocol.client.transport.StdioClientTransport;
import io.modelcontextprotocol.spec.McpClientTransport;
import io.modelcontextprotocol.spec.McpSchema;

/** A host on the blocking client of the official SDK, over stdio, HTTP+SSE and Streamable HTTP; legacy only. */
final class PeerHost {
	private static final String FORM = "{\"action\":\"accept\",\"content\":{\"answer\":\"yes\"}}";
	private static final String ACCEPT = "{\"action\":\"accept\"}";
	private static final String SAMPLE = "{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"sampled\"},\"model\":\"peer-model\"}";

	static McpSchema.ElicitResult form(Object request) {
		Wire.asked("elicitation/create", request);
		return Wire.read(FORM, McpSchema.ElicitResult.class);
	}

	static McpSchema.ElicitResult url(Object request) {
		Wire.asked("elicitation/create", request);
		return Wire.read(ACCEPT, McpSchema.ElicitResult.class);
	}

	@SuppressWarnings("unchecked")
	private static McpClientTransport transport(Map<String, Object> command) {
		String kind = (String) command.get("transport");
		if (kind.equals("stdio")) {
			var parameters = ServerParameters.builder((String) command.get("command")).args((List<String>) command.get("args"));
			var made = new StdioClientTransport(parameters.build(), Wire.JSON);
			made.setStdErrorHandler(line -> {
			});
			return made;
		}
		URI url = URI.create((String) command.get("url"));
		String base = url.resolve("/").toString();
		return kind.equals("sse") ? HttpClientSseClientTransport.builder(base).sseEndpoint(url.getPath()).build()
				: HttpClientStreamableHttpTransport.builder(base).endpoint(url.getPath()).build();
	}

	static Wire.Host connect(Map<String, Object> command) {
		var spec = McpClient.sync(transport(command)).clientInfo(new McpSchema.Implementation("java-peer", "1.0.0"))
			.requestTimeout(Duration.ofSeconds(15))
			.loggingConsumer(message -> Wire.event("log", message))
			.progressConsumer(progress -> {
				Map<String, Object> seen = Wire.map("progress", progress.progress());
				if (progress.total() != null) seen.put("total", progress.total());
				if (progress.message() != null) seen.put("message", progress.message());
				Wire.event("progress", seen);
			})
			.toolsChangeConsumer(found -> Wire.event("changed", Wire.map("list", "tools")))
			.resourcesChangeConsumer(found -> Wire.event("changed", Wire.map("list", "resources")))
			.promptsChangeConsumer(found -> Wire.event("changed", Wire.map("list", "prompts")))
			.resourcesUpdateConsumer(contents -> Wire.event("updated", Wire.map("uri", contents.get(0).uri())));
		if (Boolean.TRUE.equals(command.get("capable"))) {
			spec.capabilities(Wire.read("{\"roots\":{\"listChanged\":true},\"sampling\":{},\"elicitation\":" + Questions.ELICITATION + "}",
					McpSchema.ClientCapabilities.class))
				.roots(Wire.read("{\"uri\":\"file:///peer/root\",\"name\":\"peer\"}", McpSchema.Root.class))
				.sampling(request -> {
					Wire.asked("sampling/createMessage", request);
					return Wire.read(SAMPLE, McpSchema.CreateMessageResult.class);
				});
			Questions.answer(spec);
		}
		McpSyncClient client = spec.build();
		McpSchema.InitializeResult learnt;
		try {
			learnt = client.initialize();
		}
		catch (RuntimeException error) {
			client.close();
			throw error;
		}
		return new Wire.Host() {
			@Override
			public Map<String, Object> learnt() {
				return Wire.map("protocolVersion", learnt.protocolVersion(), "serverInfo", learnt.serverInfo(), "capabilities",
						learnt.capabilities(), "instructions", learnt.instructions());
			}

			@Override
			public Object run(Map<String, Object> command) throws Exception {
				return PeerHost.run(client, command);
			}

			@Override
			public void close() {
				client.closeGracefully();
			}
		};
	}

	private static Object run(McpSyncClient client, Map<String, Object> command) throws Exception {
		String uri = (String) command.get("uri");
		switch ((String) command.get("do")) {
			case "list":
				return switch ((String) command.get("of")) {
					case "tools" -> pages(client::listTools, McpSchema.ListToolsResult::tools, McpSchema.ListToolsResult::nextCursor);
					case "resources" ->
						pages(client::listResources, McpSchema.ListResourcesResult::resources, McpSchema.ListResourcesResult::nextCursor);
					case "prompts" -> pages(client::listPrompts, McpSchema.ListPromptsResult::prompts, McpSchema.ListPromptsResult::nextCursor);
					default -> pages(client::listResourceTemplates, McpSchema.ListResourceTemplatesResult::resourceTemplates,
							McpSchema.ListResourceTemplatesResult::nextCursor);
				};
			case "call":
				Map<String, Object> request = Wire.map("name", command.get("name"), "arguments",
						command.getOrDefault("arguments", Wire.map()));
				if (Boolean.TRUE.equals(command.get("progress"))) request.put("_meta", Wire.map("progressToken", command.get("id")));
				McpSchema.CallToolRequest call = Wire.read(Wire.write(request), McpSchema.CallToolRequest.class);
				if (!(command.get("timeoutMs") instanceof Number limit)) return client.callTool(call);
				return CompletableFuture.supplyAsync(() -> client.callTool(call)).get(limit.longValue(), TimeUnit.MILLISECONDS);
			case "read":
				return client.readResource(Wire.JSON.convertValue(Wire.map("uri", uri), McpSchema.ReadResourceRequest.class));
			case "subscribe":
				client.subscribeResource(Wire.JSON.convertValue(Wire.map("uri", uri), McpSchema.SubscribeRequest.class));
				return Wire.map();
			case "unsubscribe":
				client.unsubscribeResource(Wire.JSON.convertValue(Wire.map("uri", uri), McpSchema.UnsubscribeRequest.class));
				return Wire.map();
			case "prompt":
				return client.getPrompt(Wire.JSON.convertValue(
						Wire.map("name", command.get("name"), "arguments", command.getOrDefault("arguments", Wire.map())),
						McpSchema.GetPromptRequest.class));
			case "complete":
				return client.completeCompletion(Wire.JSON.convertValue(
						Wire.map("ref", command.get("ref"), "argument", command.get("argument")), McpSchema.CompleteRequest.class));
			case "level":
				client.setLoggingLevel(McpSchema.LoggingLevel.valueOf(((String) command.get("level")).toUpperCase()));
				return Wire.map();
			case "ping":
				client.ping();
				return Wire.map();
			default:
				throw new Wire.Unsupported();
		}
	}

	private static <P, E> List<E> pages(Function<String, P> fetch, Function<P, List<E>> entries, Function<P, String> next) {
		List<E> found = new ArrayList<>();
		String cursor = null;
		do {
			P page = fetch.apply(cursor);
			found.addAll(entries.apply(page));
			cursor = next.apply(page);
		}
		while (cursor != null);
		return found;
	}
}
