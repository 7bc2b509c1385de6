import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.server.McpSyncServerExchange;
import io.modelcontextprotocol.spec.McpSchema;

/** What is written differently in SDK 2: elicitation has forms and URLs. */
final class Questions {
	static final String ELICITATION = "{\"form\":{},\"url\":{}}";

	static void answer(McpClient.SyncSpec spec) {
		spec.elicitation(PeerHost::form).urlElicitation(PeerHost::url);
	}

	static Object form(McpSyncServerExchange exchange) {
		return exchange.createElicitation(Wire.read("""
				{"mode":"form","message":"Which answer?","requestedSchema":{"type":"object","properties":{"answer":{"type":"string","title":"Answer"}},"required":["answer"]}}""",
				McpSchema.ElicitFormRequest.class));
	}

	static Object url(McpSyncServerExchange exchange) {
		return exchange.createElicitation(McpSchema.ElicitUrlRequest.builder("Please visit", "https://peer.example/visit", "elicitation-1").build());
	}
}
