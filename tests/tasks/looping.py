"""Running a test's coroutine within a deadline, and waiting in it for what other tasks do."""

import asyncio


def run(main):
    return asyncio.run(asyncio.wait_for(main, 30))


async def until(condition):
    """Give the loop turns until the condition holds; the test's own deadline ends it otherwise."""
    while not condition():
        await asyncio.sleep(0)


async def until_async(condition):
    while not await condition():
        await asyncio.sleep(0)
