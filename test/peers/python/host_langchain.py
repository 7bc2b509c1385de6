"""A host on LangChain (langchain-mcp-adapters): one client, and per connection one session, whose tools an agent would get."""

from contextlib import asynccontextmanager

from langchain_core.tools import ToolException
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

import asyncio
from wire import Unsupported, serve


class Host:
    def __init__(self, session, tools):
        self.session, self.tools = session, tools

    async def list(self, of):
        if of != "tools":
            raise Unsupported
        self.tools = {tool.name: tool for tool in await load_mcp_tools(self.session)}
        return [{"name": one.name, "description": one.description, "schema": one.args_schema} for one in self.tools.values()]

    async def call(self, name, number, arguments=None, **_):
        try:
            said = await self.tools[name].ainvoke({"name": name, "args": arguments or {}, "id": "call", "type": "tool_call"})
        except ToolException as error:
            return {"failed": str(error)}
        # LangChain gives every block a random id of its own.
        content = said.content
        if isinstance(content, list):
            content = [{key: value for key, value in block.items() if key != "id"} if isinstance(block, dict) else block for block in content]
        return {"content": content, "status": said.status}


@asynccontextmanager
async def connect(target):
    kind = {"stdio": "stdio", "sse": "sse", "http": "streamable_http"}[target["transport"]]
    where = {"command": target["command"], "args": target["args"]} if kind == "stdio" else {"url": target["url"]}
    client = MultiServerMCPClient({"peer": {"transport": kind, **where}})
    async with client.session("peer") as session:
        host = Host(session, {})
        await host.list("tools")
        yield host, {}


asyncio.run(serve(connect))
