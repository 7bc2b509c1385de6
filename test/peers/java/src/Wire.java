import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.json.McpJsonMapper;
import io.modelcontextprotocol.spec.McpError;

/** The command loop of a host (test/peers/README.md): one JSON command per line on stdin, one answer per line on stdout. */
final class Wire {
	static final McpJsonMapper JSON = McpJsonDefaults.getMapper();

	/** One connection; `run` serves every verb but connect, cancel and close. */
	interface Host {
		Map<String, Object> learnt();

		Object run(Map<String, Object> command) throws Exception;

		void close();
	}

	interface Connector {
		Host connect(Map<String, Object> command) throws Exception;
	}

	/** The SDK has no such request. */
	static final class Unsupported extends RuntimeException {
	}

	private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

	static <T> T read(String json, Class<T> type) {
		try {
			return JSON.readValue(json, type);
		}
		catch (Exception error) {
			throw new IllegalArgumentException(error);
		}
	}

	static String write(Object value) {
		try {
			return JSON.writeValueAsString(value);
		}
		catch (Exception error) {
			throw new IllegalArgumentException(error);
		}
	}

	static Map<String, Object> map(Object... pairs) {
		Map<String, Object> made = new LinkedHashMap<>();
		for (int at = 0; at < pairs.length; at += 2)
			made.put((String) pairs[at], pairs[at + 1]);
		return made;
	}

	static void emit(Map<String, Object> message) {
		String line = write(message);
		synchronized (OUT) {
			OUT.print(line + "\n");
			OUT.flush();
		}
	}

	static void event(String kind, Object params) {
		emit(map("event", kind, "params", params));
	}

	static void asked(String method, Object params) {
		emit(map("event", "asked", "method", method, "params", params));
	}

	/** The JSON-RPC error in a chain of causes; the SDK wraps it where its reactive client is waited for. */
	private static Map<String, Object> failure(Throwable error, boolean cancelled) {
		if (cancelled) return map("kind", "cancelled");
		for (Throwable inner = error; inner != null; inner = inner.getCause()) {
			if (inner instanceof Unsupported) return map("kind", "unsupported");
			if (inner instanceof McpError found && found.getJsonRpcError() != null) {
				var wire = found.getJsonRpcError();
				Map<String, Object> made = map("code", wire.code(), "message", wire.message());
				if (wire.data() != null) made.put("data", wire.data());
				return made;
			}
		}
		Throwable root = error;
		while (root.getCause() != null) root = root.getCause();
		return map("kind", root.getClass().getSimpleName(), "message", String.valueOf(root.getMessage()));
	}

	/** Runs commands until stdin ends: each in a thread, which a cancellation interrupts, as users of the blocking client do. */
	@SuppressWarnings("unchecked")
	static void serve(Connector connector) throws Exception {
		Map<Integer, Thread> running = new ConcurrentHashMap<>();
		Map<Integer, Boolean> cancelled = new ConcurrentHashMap<>();
		Host[] host = new Host[1];
		BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
		for (String line; (line = lines.readLine()) != null;) {
			Map<String, Object> command = JSON.readValue(line, Map.class);
			int id = ((Number) command.get("id")).intValue();
			Thread thread = new Thread(() -> {
				try {
					Object result = null;
					switch ((String) command.get("do")) {
						case "connect" -> result = (host[0] = connector.connect(command)).learnt();
						case "close" -> host[0].close();
						case "cancel" -> {
							int call = ((Number) command.get("call")).intValue();
							Thread found = running.get(call);
							if (found != null) {
								cancelled.put(call, true);
								found.interrupt();
							}
						}
						default -> result = host[0].run(command);
					}
					emit(map("id", id, "result", result));
				}
				catch (Throwable error) {
					emit(map("id", id, "error", failure(error, cancelled.containsKey(id))));
				}
				finally {
					running.remove(id);
				}
			});
			thread.setDaemon(true);
			running.put(id, thread);
			thread.start();
		}
		System.exit(0);
	}
}
