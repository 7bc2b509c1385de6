"""A host on pydantic-ai: a toolset that an agent would get, asked directly."""

import asyncio
from contextlib import asynccontextmanager

from pydantic_ai import ModelRetry
from pydantic_ai.mcp import MCPServerSSE, MCPServerStdio, MCPServerStreamableHTTP

from wire import Unsupported, serve


class Host:
    def __init__(self, server):
        self.server = server

    async def list(self, of):
        if of != "tools":
            raise Unsupported
        return await self.server.list_tools()

    async def call(self, name, number, arguments=None, **_):
        try:
            return {"result": await self.server.direct_call_tool(name, arguments or {})}
        except ModelRetry as error:
            return {"retry": str(error)}


@asynccontextmanager
async def connect(target):
    if target["transport"] == "stdio":
        server = MCPServerStdio(target["command"], target["args"])
    else:
        server = (MCPServerSSE if target["transport"] == "sse" else MCPServerStreamableHTTP)(target["url"])
    async with server:
        yield Host(server), {}


asyncio.run(serve(connect))
