"""A host on the official SDK 1 (`mcp<2`): ClientSession over stdio, HTTP+SSE and Streamable HTTP; legacy only."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

from wire import FORM, ROOTS, SAMPLE, event, pages, serve


def transport(target):
    if target["transport"] == "stdio":
        return stdio_client(StdioServerParameters(command=target["command"], args=target["args"], env=target.get("env")))
    return (sse_client if target["transport"] == "sse" else streamablehttp_client)(target["url"])


async def elicited(_, params):
    event("asked", params, method="elicitation/create")
    return types.ElicitResult(**(FORM if getattr(params, "mode", "form") == "form" else {"action": "accept"}))


async def sampled(_, params):
    event("asked", params, method="sampling/createMessage")
    return types.CreateMessageResult(**SAMPLE)


async def rooted(_):
    event("asked", {}, method="roots/list")
    return types.ListRootsResult(**ROOTS)


async def logged(params):
    event("log", params)


async def noticed(message):
    if isinstance(message, types.ServerNotification):
        kind = message.root.method.split("/")
        if kind[-1] == "list_changed":
            event("changed", {"list": kind[1]})
        elif kind[-1] == "updated":
            event("updated", {"uri": str(message.root.params.uri)})


class Host:
    def __init__(self, session):
        self.session = session

    async def list(self, of):
        fetch = {
            "tools": self.session.list_tools,
            "resources": self.session.list_resources,
            "resourceTemplates": self.session.list_resource_templates,
            "prompts": self.session.list_prompts,
        }[of]
        return await pages(lambda cursor: fetch(params=types.PaginatedRequestParams(cursor=cursor)), of)

    async def call(self, name, number, arguments=None, progress=False, timeoutMs=None):
        async def progressed(progress, total, message):
            event("progress", {"progress": progress, "total": total, "message": message}, call=number)

        timeout = None if timeoutMs is None else timedelta(milliseconds=timeoutMs)
        return await self.session.call_tool(name, arguments, timeout, progressed if progress else None)

    async def read(self, uri):
        return await self.session.read_resource(uri)

    async def subscribe(self, uri):
        return await self.session.subscribe_resource(uri)

    async def unsubscribe(self, uri):
        return await self.session.unsubscribe_resource(uri)

    async def prompt(self, name, arguments=None):
        return await self.session.get_prompt(name, arguments)

    async def complete(self, ref, argument):
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return await self.session.complete(kind(**ref), argument)

    async def level(self, level):
        return await self.session.set_logging_level(level)

    async def ping(self):
        return await self.session.send_ping()


@asynccontextmanager
async def connect(target):
    handlers = (
        dict(sampling_callback=sampled, elicitation_callback=elicited, list_roots_callback=rooted) if target["capable"] else {}
    )
    async with transport(target) as streams:
        async with ClientSession(*streams[:2], logging_callback=logged, message_handler=noticed, **handlers) as session:
            yield Host(session), await session.initialize()


asyncio.run(serve(connect))
