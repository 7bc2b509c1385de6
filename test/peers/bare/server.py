"""An MCP server that writes JSON as Python does: json.dumps escapes what is not ASCII, in keys, too. No package is needed.

Usage: server.py legacy|modern stdio|http. Over HTTP it prints its port first and answers each POST with a body of its own.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ERA, WAY = sys.argv[1], sys.argv[2]
MODERN = "2026-07-28"
SEEN = "io.modelcontextprotocol/protocolVersion"
META = {"café": "é/è", "x.example/ключ": [1, "ü"], "twice": 1}
SCHEMA = {"type": "object", "properties": {"café": {"type": "string"}}}


def question():
    params = {"mode": "form", "message": "Größe?", "requestedSchema": SCHEMA}
    return {"method": "elicitation/create", "params": params}


def call(params):
    name, arguments = params["name"], params.get("arguments") or {}
    if name == "fail":
        return {"error": {"code": 7, "message": "zu groß", "data": {"größe": 1, "x/y": {"é": 2}}}}
    if name == "ask" and "inputResponses" not in params and ERA == "modern":
        return {"result": {"resultType": "input_required", "inputRequests": {"größe/1": question()}, "_meta": META}}
    answers = params.get("inputResponses", {})
    text = json.dumps({"arguments": arguments, "answers": answers, "meta": sorted(params.get("_meta", {}))})
    return {"result": {"content": [{"type": "text", "text": text}], "structuredContent": {"café": 1}, "_meta": META}}


def answer(method, params):
    if method == "initialize" and ERA == "legacy":
        capabilities = {"tools": {}}
        return {"result": {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "é", "version": "1"}}}
    if method == "server/discover" and ERA == "modern":
        return {"result": {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "_meta": META}}
    if method == "tools/list":
        return {"result": {"tools": [{"name": name, "inputSchema": SCHEMA, "_meta": META} for name in ("echo", "fail", "ask")]}}
    if method == "tools/call":
        return call(params)
    if method == "ping":
        return {"result": {}}
    return {"error": {"code": -32601, "message": "Method not found"}}


def reply(message):
    """The answer to one message, as text; None to a notification."""
    if "method" not in message or "id" not in message:
        return None
    params = message.get("params") or {}
    body = answer(message["method"], params)
    result = body.get("result")
    if result is not None and ERA == "modern":
        result.setdefault("resultType", "complete")
        result["ttlMs"], result["cacheScope"] = 0, "private"
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], **body})


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        text = reply(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        body = (text or "").encode()
        self.send_response(202 if text is None else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send_error(405)

    do_DELETE = do_GET

    def log_message(self, *_):
        pass


if WAY == "http":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
for line in sys.stdin:
    text = reply(json.loads(line))
    if text is not None:
        print(text, flush=True)
