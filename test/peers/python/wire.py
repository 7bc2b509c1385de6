"""The command loop of a host (test/peers/README.md): one JSON command per line on stdin, one answer per line on stdout.

A connection is entered and left in one task, because the SDK's context managers ask for that; every command runs in a task of its own,
so that a call can be cancelled while it runs.
"""

import asyncio
import json
import sys

from pydantic import BaseModel

FORM = {"action": "accept", "content": {"answer": "yes"}}
SAMPLE = {"role": "assistant", "content": {"type": "text", "text": "sampled"}, "model": "peer-model"}
ROOTS = {"roots": [{"uri": "file:///peer/root", "name": "peer"}]}


class Unsupported(Exception):
    """The SDK has no such request in this era."""


def plain(value):
    """What the SDK read, as JSON spells it."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value


def emit(**message):
    print(json.dumps(plain(message)), flush=True)


def event(kind, params=None, **more):
    emit(event=kind, params=plain(params), **more)


def failure(error):
    if isinstance(error, Unsupported):
        return {"kind": "unsupported"}
    if isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        return failure(error.exceptions[0])
    data = getattr(error, "error", None)
    if data is not None and hasattr(data, "code"):
        return plain(data)
    return {"kind": type(error).__name__, "message": str(error)}


async def pages(fetch, field):
    found, cursor = [], None
    while True:
        page = await fetch(cursor)
        found += getattr(page, field)
        cursor = getattr(page, "nextCursor", getattr(page, "next_cursor", None))
        if cursor is None:
            return found


async def serve(connect):
    """`connect(target)` is an async context manager whose object has one coroutine per command; it yields (host, what it learnt)."""
    loop, running, session = asyncio.get_running_loop(), {}, {}

    async def live(target, opened, closing):
        try:
            async with connect(target) as (host, learnt):
                session["host"] = host
                opened.set_result(learnt)
                await closing.wait()
        except BaseException as error:
            if not opened.done():
                opened.set_exception(RuntimeError(json.dumps(failure(error))))

    async def run(command):
        number, verb = command.pop("id"), command.pop("do")
        try:
            if verb == "connect":
                opened, session["closing"] = loop.create_future(), asyncio.Event()
                session["task"] = asyncio.create_task(live(command, opened, session["closing"]))
                result = await opened
            elif verb == "close":
                session["closing"].set()
                result = await session["task"]
            elif verb == "cancel":
                result = running[command["call"]].cancel() or None
            else:
                if verb == "call":
                    command["number"] = number
                result = await getattr(session["host"], verb)(**command)
            emit(id=number, result=result)
        except asyncio.CancelledError:
            emit(id=number, error={"kind": "cancelled"})
        except BaseException as error:
            emit(id=number, error=failure(error))
        finally:
            running.pop(number, None)

    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command = json.loads(line)
        running[command["id"]] = asyncio.create_task(run(command))
