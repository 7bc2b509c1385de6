"""A server with every feature on one of three SDKs: `mcp` 1.x (its FastMCP), `mcp` 2.x (MCPServer) or FastMCP 4.

server.py mcp1 | mcp2 | fastmcp4  stdio | sse PORT | http PORT. What it offers stands in test/peers/README.md; the three differ where their SDKs do.
"""

import base64
import sys
from typing import Annotated, Any

import anyio
from pydantic import Field
from typing_extensions import TypedDict

from mcp import types

SDK, TRANSPORT, PORT = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0
if SDK == "mcp1":
    from mcp.server.fastmcp import Context, FastMCP
    from mcp.shared.exceptions import UrlElicitationRequiredError
elif SDK == "mcp2":
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.shared.exceptions import MCPError
else:
    from fastmcp import Context, FastMCP
    from fastmcp.tools.base import ToolResult
    from mcp.shared.exceptions import MCPError

INSTRUCTIONS = "A peer written in Python."
ANNOTATIONS = types.ToolAnnotations(**{"title": "Says it again", "readOnlyHint": True, "openWorldHint": False})
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
BLOCKS = [
    {"type": "text", "text": "plain ünïcode \u2028 text", "annotations": {"audience": ["user"], "priority": 0.5}},
    {"type": "image", "data": PNG, "mimeType": "image/png"},
    {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "peer://text", "name": "text", "mimeType": "text/plain", "description": "A link"},
    {"type": "resource", "resource": {"uri": "peer://text", "mimeType": "text/plain", "text": "embedded"}},
    {"type": "resource", "resource": {"uri": "peer://blob", "mimeType": "application/octet-stream", "blob": "AAEC"}},
]
FORM = {"type": "object", "properties": {"answer": {"type": "string", "title": "Answer"}}, "required": ["answer"]}
URL = "https://peer.example/visit"

if SDK == "mcp1":
    app = FastMCP("python-peer", instructions=INSTRUCTIONS, port=PORT, log_level="ERROR")
elif SDK == "mcp2":
    app = MCPServer("python-peer", version="1.0.0", title="Python peer", instructions=INSTRUCTIONS, log_level="ERROR")
else:
    app = FastMCP("python-peer", version="1.0.0", instructions=INSTRUCTIONS, list_page_size=7)


def result(**wire: Any) -> Any:
    made = types.CallToolResult.model_validate({"content": [], **wire})
    return ToolResult.from_mcp_result(made) if SDK == "fastmcp4" else made


def text(said: str) -> Any:
    return result(content=[{"type": "text", "text": said}])


def is_modern(ctx: Context) -> bool:
    return SDK != "mcp1" and str(getattr(ctx.request_context, "protocol_version", "")) >= "2026"


async def ask(ctx: Context, method: str, params: dict[str, Any]) -> Any:
    """Asks the host: by a request in the legacy era, by InputRequiredResult in the modern one. Ends with what it answered, as text."""
    if is_modern(ctx):
        answer = (ctx.input_responses or {}).get("question")
        if answer is None:
            question = {"method": method, "params": params}
            return types.InputRequiredResult.model_validate({"resultType": "input_required", "inputRequests": {"question": question}})
    elif method == "elicitation/create" and params["mode"] == "url":
        answer = await ctx.session.elicit_url(params["message"], params["url"], "elicitation-1", ctx.request_id)
    elif method == "elicitation/create":
        answer = await ctx.session.elicit_form(params["message"], params["requestedSchema"], ctx.request_id)
    elif method == "sampling/createMessage":
        messages = [types.SamplingMessage.model_validate(one) for one in params["messages"]]
        more = {"related_request_id": ctx.request_id}
        answer = await ctx.session.create_message(messages, max_tokens=params["maxTokens"], system_prompt=params["systemPrompt"], **more)
    else:
        answer = await ctx.session.list_roots()
    return text(answer.model_dump_json(by_alias=True, exclude_none=True) if hasattr(answer, "model_dump_json") else repr(answer))


class Counted(TypedDict):
    n: int
    list: list[int]


@app.tool(title="Echo", description="Says it again.", annotations=ANNOTATIONS, meta={"peer.example/kind": "echo"})
def echo(text: str, times: Annotated[int, Field(ge=1, le=3, description="How often")] = 1) -> str:
    return " ".join([text] * times)


@app.tool(description="One block of each type.")
def blocks() -> Any:
    return result(content=BLOCKS, _meta={"peer.example/blocks": len(BLOCKS)})


@app.tool(description="Structured content.")
def structured(n: int) -> Counted:
    return {"n": n, "list": list(range(n))}


@app.tool(description="Fails as tools fail.")
def fail() -> Any:
    return result(content=[{"type": "text", "text": "it failed"}], isError=True)


@app.tool(description="Raises.")
def throw() -> str:
    raise ValueError("unforeseen")


@app.tool(description="Answers with a JSON-RPC error.")
def refuse() -> str:
    if SDK == "mcp1":
        wanted = types.ElicitRequestURLParams(message="first", url=URL, elicitationId="elicitation-2")
        raise UrlElicitationRequiredError([wanted])
    raise MCPError(-31999, "refused", {"why": "because", "n": [1, 2]})


@app.tool(description="Reports progress.")
async def progress(ctx: Context, steps: int) -> str:
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
        await anyio.sleep(0.05)
    return "reported"


@app.tool(description="Sends log messages.")
async def log(ctx: Context) -> str:
    for level in ("debug", "info", "warning", "error"):
        await ctx.session.send_log_message(level, {"text": f"at {level}"}, "peer", ctx.request_id)
    return "logged"


cancelled_keys: set[str] = set()


@app.tool(description="Waits until it is cancelled.")
async def wait(ctx: Context, key: str) -> str:
    try:
        await ctx.report_progress(1, None, "waiting")
        await anyio.sleep(30)
    except anyio.get_cancelled_exc_class():
        cancelled_keys.add(key)
        raise
    return "waited"


@app.tool(description="Tells whether the call with this key was cancelled.")
async def cancelled(key: str) -> str:
    for _ in range(10):
        if key in cancelled_keys:
            return "cancelled"
        await anyio.sleep(0.05)
    return "not cancelled"


@app.tool(description="Takes its time.")
async def slow(ms: int) -> str:
    await anyio.sleep(ms / 1000)
    return "done"


def extra() -> str:
    return "extra"


@app.tool(description="Adds a tool, or removes it.")
async def grow(ctx: Context, remove: bool = False) -> str:
    if not remove:
        app.tool(description="Only sometimes there.")(extra)
    elif SDK == "fastmcp4":
        app.local_provider.remove_tool("extra")
    else:
        app.remove_tool("extra")
    if SDK == "mcp1":
        await ctx.session.send_tool_list_changed()
    elif SDK == "mcp2" and is_modern(ctx):
        await ctx.notify_tools_changed()
    elif SDK == "mcp2":
        await ctx.session.send_tool_list_changed()
    return "grown"


@app.tool(description="Updates peer://watched.")
async def touch(ctx: Context) -> str:
    if SDK == "mcp2" and is_modern(ctx):
        await ctx.notify_resource_updated("peer://watched")
    else:
        await ctx.session.send_resource_updated("peer://watched")
    return "touched"


@app.tool(description="Asks with a form.")
async def ask_form(ctx: Context) -> Any:
    return await ask(ctx, "elicitation/create", {"mode": "form", "message": "Which answer?", "requestedSchema": FORM})


@app.tool(description="Asks to visit a page.")
async def ask_url(ctx: Context) -> Any:
    return await ask(ctx, "elicitation/create", {"mode": "url", "message": "Please visit", "url": URL, "elicitationId": "elicitation-1"})


@app.tool(description="Asks the model.")
async def sample(ctx: Context) -> Any:
    messages = [{"role": "user", "content": {"type": "text", "text": "What?"}}]
    return await ask(ctx, "sampling/createMessage", {"messages": messages, "maxTokens": 7, "systemPrompt": "Be brief."})


@app.tool(description="Asks for the roots.")
async def roots(ctx: Context) -> Any:
    return await ask(ctx, "roots/list", {})


@app.resource("peer://text", title="Text", description="A text", mime_type="text/plain")
def text_resource() -> str:
    return "the text\r\n\tünïcode"


@app.resource("peer://blob", mime_type="application/octet-stream")
def blob_resource() -> bytes:
    return base64.b64decode("AAECAwQ=")


@app.resource("peer://watched", mime_type="text/plain")
def watched_resource() -> str:
    return "watched"


@app.resource("peer://items/{id}", title="Item", description="One item", mime_type="application/json")
def item(id: str) -> str:
    return f'{{"id":"{id}"}}'


@app.prompt(title="Greeting", description="Greets.")
def greet(name: str, style: str = "short") -> str:
    return f"Greet {name} in a {style} way."


if SDK != "fastmcp4":

    @app.completion()
    async def complete(ref: Any, argument: Any, context: Any) -> types.Completion:
        found = [one for one in ("alice", "albert", "bob") if one.startswith(argument.value)]
        return types.Completion.model_validate({"values": found, "total": len(found), "hasMore": False})


if SDK == "mcp1":
    # FastMCP 1 has no public way to take subscriptions; servers that want them reach for the low-level one, which declares nothing.
    @app._mcp_server.subscribe_resource()
    async def subscribe(uri: Any) -> None:
        pass

    @app._mcp_server.unsubscribe_resource()
    async def unsubscribe(uri: Any) -> None:
        pass


if SDK == "mcp1":
    app.run({"stdio": "stdio", "sse": "sse", "http": "streamable-http"}[TRANSPORT])
elif TRANSPORT == "stdio":
    app.run("stdio", **({"show_banner": False} if SDK == "fastmcp4" else {}))
elif SDK == "mcp2":
    app.run("sse" if TRANSPORT == "sse" else "streamable-http", port=PORT)
else:
    app.run("sse" if TRANSPORT == "sse" else "http", port=PORT, show_banner=False)
