"""A host on FastMCP 4: its Client over stdio, HTTP+SSE and Streamable HTTP; finds the era."""

import asyncio
from contextlib import asynccontextmanager

from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from mcp import types

from wire import FORM, ROOTS, SAMPLE, Unsupported, event, pages, serve

def transport(target):
    if target["transport"] == "stdio":
        return StdioTransport(target["command"], target["args"], env=target.get("env"), keep_alive=False)
    return (SSETransport if target["transport"] == "sse" else StreamableHttpTransport)(target["url"])


async def elicited(_message, _type, params, _context):
    event("asked", params, method="elicitation/create")
    return types.ElicitResult(**(FORM if getattr(params, "mode", "form") == "form" else {"action": "accept"}))


async def sampled(_messages, params, _context):
    event("asked", params, method="sampling/createMessage")
    return types.CreateMessageResult(**SAMPLE)


async def rooted(_context):
    event("asked", {}, method="roots/list")
    return [types.Root(**one) for one in ROOTS["roots"]]


async def logged(params):
    event("log", params)


async def noticed(message):
    kind = getattr(message, "method", "").split("/")
    if kind[-1] == "list_changed":
        event("changed", {"list": kind[1]})
    elif kind[-1] == "updated":
        event("updated", {"uri": message.params.uri})


class Host:
    def __init__(self, client):
        self.client = client

    async def list(self, of):
        fetch, field = {
            "tools": (self.client.list_tools_mcp, "tools"),
            "resources": (self.client.list_resources_mcp, "resources"),
            "resourceTemplates": (self.client.list_resource_templates_mcp, "resource_templates"),
            "prompts": (self.client.list_prompts_mcp, "prompts"),
        }[of]
        return await pages(lambda cursor: fetch(cursor=cursor, cache_mode="bypass"), field)

    async def call(self, name, number, arguments=None, progress=False, timeoutMs=None):
        async def progressed(progress, total, message):
            event("progress", {"progress": progress, "total": total, "message": message}, call=number)

        more = {"progress_handler": progressed} if progress else {}
        if timeoutMs is not None:
            more["timeout"] = timeoutMs / 1000
        return await self.client.call_tool_mcp(name, arguments or {}, **more)

    async def read(self, uri):
        return await self.client.read_resource_mcp(uri)

    async def subscribe(self, uri):
        raise Unsupported

    async def unsubscribe(self, uri):
        raise Unsupported

    async def prompt(self, name, arguments=None):
        return await self.client.get_prompt_mcp(name, arguments)

    async def complete(self, ref, argument):
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return await self.client.complete_mcp(kind(**ref), argument)

    async def level(self, level):
        return await self.client.set_logging_level(level)

    async def ping(self):
        return {"pong": await self.client.ping()}


@asynccontextmanager
async def connect(target):
    handlers = dict(sampling_handler=sampled, elicitation_handler=elicited, roots=rooted) if target["capable"] else {}
    options = dict(mode="auto", log_handler=logged, message_handler=noticed)
    async with Client(transport(target), **options, **handlers) as client:
        yield Host(client), {
            "protocolVersion": client.protocol_version,
            "serverInfo": client.server_info,
            "capabilities": client.server_capabilities,
            "instructions": client.instructions,
        }


asyncio.run(serve(connect))
