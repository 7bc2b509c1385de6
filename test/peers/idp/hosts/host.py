"""`host.py URL [CLIENT_ID]`: a host on the official Python SDK, 1 or 2, with its own OAuth flow, which calls a tool."""

import asyncio
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version
from urllib.parse import parse_qs, urlparse

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

URL, CLIENT_ID = sys.argv[1], (sys.argv[2:] or [None])[0]
IS_SECOND = version("mcp").startswith("2.")


def show(line):
    print(json.dumps(line), flush=True)


class Callback(BaseHTTPRequestHandler):
    """Where the browser comes back."""

    returned = None
    came = threading.Event()

    def do_GET(self):
        at = urlparse(self.path)
        if at.path == "/callback":
            Callback.returned = {name: values[0] for name, values in parse_qs(at.query).items()}
            Callback.came.set()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"back at the host")

    def log_message(self, *_):
        pass


class Storage:
    def __init__(self, client):
        self.client, self.tokens = client, None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def redirected(url):
    show({"open": url})


async def code():
    await asyncio.to_thread(Callback.came.wait)
    found = Callback.returned
    if IS_SECOND:
        from mcp.shared.auth import AuthorizationCodeResult

        return AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))
    return found["code"], found.get("state")


async def visit(provider):
    if IS_SECOND:
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        async with create_mcp_http_client(auth=provider) as http:
            async with Client(streamable_http_client(URL, http_client=http)) as client:
                tools = await client.list_tools()
                return tools, await client.call_tool("shared__echo", {})
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(URL, auth=provider) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            return await session.list_tools(), await session.call_tool("shared__echo", {})


async def main():
    server = HTTPServer(("127.0.0.1", 0), Callback)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    redirect = f"http://127.0.0.1:{server.server_port}/callback"
    facts = dict(
        redirect_uris=[redirect],
        client_name="A host on the official SDK",
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="none",
    )
    client = None if CLIENT_ID is None else OAuthClientInformationFull(client_id=CLIENT_ID, **facts)
    storage = Storage(client)
    provider = OAuthClientProvider(URL, OAuthClientMetadata(**facts), storage, redirected, code)
    try:
        tools, result = await visit(provider)
        show({"tools": [tool.name for tool in tools.tools], "text": result.model_dump_json()})
    except BaseException as error:
        causes = [error]
        while getattr(causes[-1], "exceptions", None):
            causes.append(causes[-1].exceptions[0])
        show({"failed": repr(causes[-1])})


asyncio.run(main())
