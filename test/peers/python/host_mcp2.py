"""A host on the official SDK 2 (`mcp`): Client over stdio, HTTP+SSE and Streamable HTTP; finds the era, but with `--revision=DATE | legacy`."""

import asyncio
import sys
from contextlib import AsyncExitStack, asynccontextmanager

from mcp import Client, StdioServerParameters, types
from mcp.client.sse import sse_client

from wire import FORM, ROOTS, SAMPLE, event, pages, serve

MODE = next((word.removeprefix("--revision=") for word in sys.argv[1:]), "auto")


def transport(target):
    if target["transport"] == "stdio":
        return StdioServerParameters(command=target["command"], args=target["args"], env=target.get("env"))
    return sse_client(target["url"]) if target["transport"] == "sse" else target["url"]


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
    kind = getattr(message, "method", "").split("/")
    if kind[-1] == "list_changed":
        event("changed", {"list": kind[1]})
    elif kind[-1] == "updated":
        event("updated", {"uri": message.params.uri})


class Host:
    def __init__(self, client, stack):
        self.client, self.stack, self.listening = client, stack, {}

    @property
    def modern(self):
        return self.client.protocol_version >= "2026"

    async def list(self, of):
        if of == "resourceTemplates":
            return await pages(lambda cursor: self.client.list_resource_templates(cursor=cursor), "resource_templates")
        fetch = {"tools": self.client.list_tools, "resources": self.client.list_resources, "prompts": self.client.list_prompts}[of]
        return await pages(lambda cursor: fetch(cursor=cursor, cache_mode="bypass"), of)

    async def call(self, name, number, arguments=None, progress=False, timeoutMs=None):
        async def progressed(progress, total, message):
            event("progress", {"progress": progress, "total": total, "message": message}, call=number)

        timeout = None if timeoutMs is None else timeoutMs / 1000
        return await self.client.call_tool(name, arguments, timeout, progressed if progress else None)

    async def read(self, uri):
        return await self.client.read_resource(uri)

    async def subscribe(self, uri):
        if not self.modern:
            return await self.client.subscribe_resource(uri)
        await self.listen(uri, resource_subscriptions=[uri])
        return {}

    async def unsubscribe(self, uri):
        if not self.modern:
            return await self.client.unsubscribe_resource(uri)
        self.listening.pop(uri).cancel()
        return {}

    async def listen(self, key, **wanted):
        """The stream is entered and left in one task; what it tells comes through `noticed`, too."""
        opened = asyncio.get_running_loop().create_future()

        async def follow():
            try:
                async with self.client.listen(**wanted) as events:
                    opened.set_result(None)
                    async for _ in events:
                        pass
            except BaseException as error:
                if not opened.done():
                    opened.set_exception(error)

        self.listening[key] = asyncio.create_task(follow())
        await opened

    async def prompt(self, name, arguments=None):
        return await self.client.get_prompt(name, arguments)

    async def complete(self, ref, argument):
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        return await self.client.complete(kind(**ref), argument)

    async def level(self, level):
        return await self.client.set_logging_level(level)

    async def ping(self):
        return await self.client.send_ping()


@asynccontextmanager
async def connect(target):
    handlers = (
        dict(sampling_callback=sampled, elicitation_callback=elicited, list_roots_callback=rooted) if target["capable"] else {}
    )
    options = dict(mode=MODE, logging_callback=logged, message_handler=noticed, log_level="debug")
    async with Client(transport(target), **options, **handlers) as client, AsyncExitStack() as stack:
        host = Host(client, stack)
        if host.modern:
            await host.listen("lists", tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True)
        yield host, {
            "protocolVersion": client.protocol_version,
            "serverInfo": client.server_info,
            "capabilities": client.server_capabilities,
            "instructions": client.instructions,
        }
        for task in host.listening.values():
            task.cancel()
        await asyncio.gather(*host.listening.values(), return_exceptions=True)


asyncio.run(serve(connect))
