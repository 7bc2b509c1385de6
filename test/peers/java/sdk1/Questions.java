import java.util.Map;

import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.server.McpSyncServerExchange;
import io.modelcontextprotocol.spec.McpSchema;

/** What is written differently in SDK 1: elicitation has forms only. */
final class Questions {
	static final String ELICITATION = "{}";

	static void answer(McpClient.SyncSpec spec) {
		spec.elicitation(PeerHost::form);
	}

	static Object form(McpSyncServerExchange exchange) {
		return exchange.createElicitation(Wire.read("""
				{"message":"Which answer?","requestedSchema":{"type":"object","properties":{"answer":{"type":"string","title":"Answer"}},"required":["answer"]}}""",
				McpSchema.ElicitRequest.class));
	}

	static Object url(McpSyncServerExchange exchange) {
		return Map.of();
	}
}
