"""An MCP host that writes JSON as Python does: json.dumps escapes what is not ASCII, in keys, too. No package is needed.

Usage: host.py legacy|modern [URL]. Without a URL it speaks on stdin and stdout. Prints what it got on stderr, as one line of JSON.
"""

import json
import sys
import urllib.error
import urllib.request

ERA, URL = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
PREFIX = "io.modelcontextprotocol/"
MODERN = {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {"elicitation": {}}}
OWN = {"café": "é/è", "x.example/ключ": 1}
session = {}
ids = iter(range(1, 100))


def send(message):
    """Sends one message; returns the text of its answer, or None."""
    text = json.dumps(message)
    if URL is None:
        print(text, flush=True)
        return sys.stdin.readline() if "id" in message else None
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream", **session}
    if ERA == "modern":
        headers["mcp-protocol-version"] = "2026-07-28"
        headers["mcp-method"] = message["method"]
        if "name" in message["params"]:
            headers["mcp-name"] = message["params"]["name"]
    try:
        response = urllib.request.urlopen(urllib.request.Request(URL, text.encode(), headers))
    except urllib.error.HTTPError as error:
        response = error
    if response.headers.get("mcp-session-id"):
        session["mcp-session-id"] = response.headers["mcp-session-id"]
    body = response.read().decode()
    data = [line[6:] for line in body.splitlines() if line.startswith("data: {")]
    return data[-1] if data else body


def request(method, **params):
    params["_meta"] = {**OWN, **(MODERN if ERA == "modern" else {})}
    answer = json.loads(send({"jsonrpc": "2.0", "id": next(ids), "method": method, "params": params}))
    return answer.get("result", answer.get("error"))


if ERA == "legacy":
    request("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "é", "version": "1"})
    send({"jsonrpc": "2.0", "method": "notifications/initialized"})
name = request("tools/list")["tools"][0]["name"]
print(json.dumps([name, request("tools/call", name=name, arguments={"café": "a/b"})]), file=sys.stderr)
