"""A host on pydantic-ai: a toolset that an agent would get, asked directly."""

import asyncio
from contextlib import asynccontextmanager

from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from pydantic_ai import ModelRetry
from pydantic_ai.mcp import MCPToolset

from wire import Unsupported, serve


class Host:
    def __init__(self, toolset):
        self.toolset = toolset

    async def list(self, of):
        if of != "tools":
            raise Unsupported
        return await self.toolset.list_tools()

    async def call(self, name, number, arguments=None, **_):
        try:
            return {"result": await self.toolset.direct_call_tool(name, arguments or {})}
        except ModelRetry as error:
            return {"retry": str(error)}


@asynccontextmanager
async def connect(target):
    if target["transport"] == "stdio":
        transport = StdioTransport(target["command"], target["args"])
    else:
        transport = (SSETransport if target["transport"] == "sse" else StreamableHttpTransport)(target["url"])
    async with MCPToolset(transport) as toolset:
        yield Host(toolset), {}


asyncio.run(serve(connect))
