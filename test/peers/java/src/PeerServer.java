import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.McpServerFeatures.SyncCompletionSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncPromptSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncResourceSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncResourceTemplateSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncToolSpecification;
import io.modelcontextprotocol.server.McpSyncServer;
import io.modelcontextprotocol.server.McpSyncServerExchange;
import io.modelcontextprotocol.server.transport.HttpServletSseServerTransportProvider;
import io.modelcontextprotocol.server.transport.HttpServletStreamableServerTransportProvider;
import io.modelcontextprotocol.server.transport.StdioServerTransportProvider;
import io.modelcontextprotocol.spec.McpError;
import io.modelcontextprotocol.spec.McpSchema;
import jakarta.servlet.http.HttpServlet;
import org.apache.catalina.startup.Tomcat;

/** A server with every feature (test/peers/README.md), on the blocking server of the official SDK and, over HTTP, its servlets in Tomcat. */
final class PeerServer {
	private static final String PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
	private static final String BLOCKS = """
			{"content":[
			{"type":"text","text":"plain ünïcode \\u2028 text","annotations":{"audience":["user"],"priority":0.5}},
			{"type":"image","data":"%s","mimeType":"image/png"},
			{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"},
			{"type":"resource_link","uri":"peer://text","name":"text","mimeType":"text/plain","description":"A link"},
			{"type":"resource","resource":{"uri":"peer://text","mimeType":"text/plain","text":"embedded"}},
			{"type":"resource","resource":{"uri":"peer://blob","mimeType":"application/octet-stream","blob":"AAEC"}}
			],"_meta":{"peer.example/blocks":6}}""".formatted(PNG);
	private static final String CAPABILITIES = """
			{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"logging":{},"completions":{}}""";
	private static final Set<String> CANCELLED = ConcurrentHashMap.newKeySet();

	private interface Run {
		McpSchema.CallToolResult run(McpSyncServerExchange exchange, McpSchema.CallToolRequest request, Map<String, Object> arguments)
				throws Exception;
	}

	private static McpSchema.CallToolResult result(Object wire) {
		return Wire.JSON.convertValue(wire, McpSchema.CallToolResult.class);
	}

	private static Map<String, Object> block(String said) {
		return Wire.map("type", "text", "text", said);
	}

	private static McpSchema.CallToolResult text(String said) {
		return result(Wire.map("content", List.of(block(said))));
	}

	private static int integer(Map<String, Object> arguments, String name, int otherwise) {
		return arguments.get(name) instanceof Number number ? number.intValue() : otherwise;
	}

	private static SyncToolSpecification tool(String definition, Run run) {
		McpSchema.Tool tool = Wire.read(definition, McpSchema.Tool.class);
		return SyncToolSpecification.builder().tool(tool).callHandler((exchange, request) -> {
			try {
				return run.run(exchange, request, request.arguments() == null ? Map.of() : request.arguments());
			}
			catch (RuntimeException error) {
				throw error;
			}
			catch (Exception error) {
				throw new IllegalStateException(error);
			}
		}).build();
	}

	private static SyncToolSpecification tool(String name, String description, String properties, Run run) {
		String schema = "{\"type\":\"object\",\"properties\":{" + properties + "}}";
		return tool("{\"name\":\"" + name + "\",\"description\":\"" + description + "\",\"inputSchema\":" + schema + "}", run);
	}

	private static void report(McpSyncServerExchange exchange, McpSchema.CallToolRequest request, double progress, Double total, String message) {
		Object token = request.meta() == null ? null : request.meta().get("progressToken");
		if (token == null) return;
		Map<String, Object> params = Wire.map("progressToken", token, "progress", progress, "message", message);
		if (total != null) params.put("total", total);
		exchange.progressNotification(Wire.JSON.convertValue(params, McpSchema.ProgressNotification.class));
	}

	private static List<SyncToolSpecification> tools(McpSyncServer[] server) {
		List<SyncToolSpecification> tools = new ArrayList<>();
		tools.add(tool("""
				{"name":"echo","title":"Echo","description":"Says it again.","annotations":{"title":"Says it again","readOnlyHint":true},
				"inputSchema":{"type":"object","properties":{"text":{"type":"string"},"times":{"type":"integer","minimum":1,"maximum":3}},"required":["text"]},
				"_meta":{"peer.example/kind":"echo"}}""", (exchange, request, arguments) -> {
			int times = integer(arguments, "times", 1);
			return text(Stream.generate(() -> String.valueOf(arguments.get("text"))).limit(times).collect(Collectors.joining(" ")));
		}));
		tools.add(tool("""
				{"name":"structured","description":"Structured content.","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},
				"outputSchema":{"type":"object","properties":{"n":{"type":"integer"},"list":{"type":"array","items":{"type":"integer"}}},"required":["n","list"]}}""",
				(exchange, request, arguments) -> {
					int n = integer(arguments, "n", 0);
					Map<String, Object> value = Wire.map("n", n, "list", IntStream.range(0, n).boxed().toList());
					return result(Wire.map("content", List.of(block(Wire.write(value))), "structuredContent", value));
				}));
		tools.add(tool("blocks", "One block of each type.", "", (exchange, request, arguments) -> Wire.read(BLOCKS, McpSchema.CallToolResult.class)));
		tools.add(tool("fail", "Fails as tools fail.", "",
				(exchange, request, arguments) -> result(Wire.map("content", List.of(block("it failed")), "isError", true))));
		tools.add(tool("refuse", "Answers with a JSON-RPC error.", "", (exchange, request, arguments) -> {
			throw McpError.builder(-31999).message("refused").data(Wire.map("why", "because", "n", List.of(1, 2))).build();
		}));
		tools.add(tool("progress", "Reports progress.", "\"steps\":{\"type\":\"integer\"}", (exchange, request, arguments) -> {
			int steps = integer(arguments, "steps", 0);
			for (int step = 1; step <= steps; step++) {
				report(exchange, request, step, (double) steps, "step " + step);
				Thread.sleep(50);
			}
			return text("reported");
		}));
		tools.add(tool("log", "Sends log messages.", "", (exchange, request, arguments) -> {
			for (String level : List.of("debug", "info", "warning", "error"))
				exchange.loggingNotification(Wire.JSON.convertValue(Wire.map("level", level, "logger", "peer", "data", "at " + level),
						McpSchema.LoggingMessageNotification.class));
			return text("logged");
		}));
		tools.add(tool("wait", "Waits until it is cancelled.", "\"key\":{\"type\":\"string\"}", (exchange, request, arguments) -> {
			report(exchange, request, 1, null, "waiting");
			try {
				Thread.sleep(30_000);
			}
			catch (InterruptedException interrupted) {
				CANCELLED.add(String.valueOf(arguments.get("key")));
				throw interrupted;
			}
			return text("waited");
		}));
		// The SDK's server takes no cancellation, so there is nothing to wait for.
		tools.add(tool("cancelled", "Tells whether the call with this key was cancelled.", "\"key\":{\"type\":\"string\"}",
				(exchange, request, arguments) -> text(CANCELLED.contains(String.valueOf(arguments.get("key"))) ? "cancelled" : "not cancelled")));
		tools.add(tool("slow", "Takes its time.", "\"ms\":{\"type\":\"integer\"}", (exchange, request, arguments) -> {
			Thread.sleep(integer(arguments, "ms", 0));
			return text("done");
		}));
		tools.add(tool("grow", "Adds a tool, or removes it.", "\"remove\":{\"type\":\"boolean\"}", (exchange, request, arguments) -> {
			if (Boolean.TRUE.equals(arguments.get("remove"))) server[0].removeTool("extra");
			else server[0].addTool(tool("extra", "Only sometimes there.", "", (inner, asked, given) -> text("extra")));
			return text("grown");
		}));
		tools.add(tool("touch", "Updates peer://watched.", "", (exchange, request, arguments) -> {
			server[0].notifyResourcesUpdated(
					Wire.JSON.convertValue(Wire.map("uri", "peer://watched"), McpSchema.ResourcesUpdatedNotification.class));
			return text("touched");
		}));
		tools.add(tool("ask_form", "Asks with a form.", "", (exchange, request, arguments) -> text(Wire.write(Questions.form(exchange)))));
		tools.add(tool("ask_url", "Asks to visit a page.", "", (exchange, request, arguments) -> text(Wire.write(Questions.url(exchange)))));
		tools.add(tool("sample", "Asks the model.", "", (exchange, request, arguments) -> text(Wire.write(exchange.createMessage(Wire.read("""
				{"messages":[{"role":"user","content":{"type":"text","text":"What?"}}],"maxTokens":7,"systemPrompt":"Be brief."}""",
				McpSchema.CreateMessageRequest.class))))));
		tools.add(tool("roots", "Asks for the roots.", "", (exchange, request, arguments) -> text(Wire.write(exchange.listRoots()))));
		return tools;
	}

	private static SyncResourceSpecification resource(String definition, String contents) {
		String found = "{\"contents\":[" + contents + "]}";
		return new SyncResourceSpecification(Wire.read(definition, McpSchema.Resource.class),
				(exchange, request) -> Wire.read(found, McpSchema.ReadResourceResult.class));
	}

	private static SyncCompletionSpecification completion(McpSchema.CompleteReference reference) {
		return new SyncCompletionSpecification(reference, (exchange, request) -> {
			List<String> found = Stream.of("alice", "albert", "bob").filter(one -> one.startsWith(request.argument().value())).toList();
			return Wire.JSON.convertValue(Wire.map("completion", Wire.map("values", found, "total", found.size(), "hasMore", false)),
					McpSchema.CompleteResult.class);
		});
	}

	static void serve(String transport, int port) throws Exception {
		HttpServlet servlet = null;
		McpServer.SyncSpecification<?> spec;
		switch (transport) {
			case "stdio" -> spec = McpServer.sync(new StdioServerTransportProvider(Wire.JSON));
			case "sse" -> {
				var provider = HttpServletSseServerTransportProvider.builder().messageEndpoint("/message").sseEndpoint("/sse").build();
				servlet = provider;
				spec = McpServer.sync(provider);
			}
			default -> {
				var provider = HttpServletStreamableServerTransportProvider.builder().mcpEndpoint("/mcp").build();
				servlet = provider;
				spec = McpServer.sync(provider);
			}
		}
		McpSyncServer[] server = new McpSyncServer[1];
		server[0] = spec.serverInfo("java-peer", "1.0.0").instructions("A peer written in Java.")
			.capabilities(Wire.read(CAPABILITIES, McpSchema.ServerCapabilities.class)).tools(tools(server))
			.resources(
					resource("{\"uri\":\"peer://text\",\"name\":\"text\",\"title\":\"Text\",\"description\":\"A text\",\"mimeType\":\"text/plain\"}",
							"{\"uri\":\"peer://text\",\"mimeType\":\"text/plain\",\"text\":\"the text\\r\\n\\tünïcode\"}"),
					resource("{\"uri\":\"peer://blob\",\"name\":\"blob\",\"mimeType\":\"application/octet-stream\",\"size\":5}",
							"{\"uri\":\"peer://blob\",\"mimeType\":\"application/octet-stream\",\"blob\":\"AAECAwQ=\"}"),
					resource("{\"uri\":\"peer://watched\",\"name\":\"watched\",\"mimeType\":\"text/plain\"}",
							"{\"uri\":\"peer://watched\",\"mimeType\":\"text/plain\",\"text\":\"watched\"}"))
			.resourceTemplates(new SyncResourceTemplateSpecification(Wire.read(
					"{\"uriTemplate\":\"peer://items/{id}\",\"name\":\"item\",\"title\":\"Item\",\"description\":\"One item\",\"mimeType\":\"application/json\"}",
					McpSchema.ResourceTemplate.class), (exchange, request) -> {
						String id = request.uri().substring("peer://items/".length());
						Map<String, Object> contents = Wire.map("uri", request.uri(), "mimeType", "application/json", "text",
								Wire.write(Wire.map("id", id)));
						return Wire.JSON.convertValue(Wire.map("contents", List.of(contents)), McpSchema.ReadResourceResult.class);
					}))
			.prompts(new SyncPromptSpecification(Wire.read("""
					{"name":"greet","title":"Greeting","description":"Greets.","arguments":[{"name":"name","description":"Whom","required":true},{"name":"style"}]}""",
					McpSchema.Prompt.class), (exchange, request) -> {
						String said = "Greet %s in a %s way.".formatted(request.arguments().get("name"), request.arguments().get("style"));
						Map<String, Object> message = Wire.map("role", "user", "content", block(said));
						return Wire.JSON.convertValue(Wire.map("description", "Greets.", "messages", List.of(message)),
								McpSchema.GetPromptResult.class);
					}))
			.completions(completion(Wire.read("{\"type\":\"ref/prompt\",\"name\":\"greet\"}", McpSchema.PromptReference.class)),
					completion(Wire.read("{\"type\":\"ref/resource\",\"uri\":\"peer://items/{id}\"}", McpSchema.ResourceReference.class)))
			.build();
		if (servlet != null) listen(servlet, port);
		else new CountDownLatch(1).await();
	}

	private static void listen(HttpServlet servlet, int port) throws Exception {
		Tomcat tomcat = new Tomcat();
		tomcat.setBaseDir(System.getProperty("java.io.tmpdir"));
		tomcat.setHostname("127.0.0.1");
		tomcat.setPort(port);
		tomcat.getConnector().setProperty("address", "127.0.0.1");
		var context = tomcat.addContext("", null);
		var wrapper = Tomcat.addServlet(context, "mcp", servlet);
		wrapper.setAsyncSupported(true);
		context.addServletMappingDecoded("/*", "mcp");
		tomcat.start();
		tomcat.getServer().await();
	}
}
