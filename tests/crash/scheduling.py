"""The application of test_schedulers.py: many cron schedules, and a clock that the test moves.

A process with ROLE=scheduler claims no jobs, so that freezing or killing it disturbs the firing and nothing else.
"""

import os

from shared_clock import SharedClock

from treadle import Tasks

tasks = Tasks(
    os.environ["STORE"],
    clock=SharedClock(os.environ["CLOCK"], float(os.environ.get("SKEW", "0"))),
    concurrency=50,
    poll_interval=float(os.environ.get("POLL", "0.1")),
    lease=86_400,
    queues=["none"] if os.environ.get("ROLE") == "scheduler" else None,
)


@tasks.handler("slot")
async def slot(payload):
    """Ends at once."""


for number in range(int(os.environ.get("SCHEDULES", "0"))):
    tasks.cron(f"every-minute-{number:02}", "* * * * *", "slot", number, tz=("UTC", "Asia/Kathmandu")[number % 2])
