"""`treadle config user-token`: a token for a user (L11, F8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from treadle.cli.config import with_keys
from treadle.cli.durations import Duration
from treadle.cli.functions import missing_service
from treadle.cli.options import json_option, store_option
from treadle.cli.output import Out
from treadle.core.errors import InvalidArgument

if TYPE_CHECKING:
    from treadle.functions.keys import Keys


@click.command("user-token")
@click.argument("sub")
@click.option("--role", type=click.Choice(["user", "admin"]), default="user", help="[default: user]")
@click.option("--expires-in", type=Duration(), default="1h", metavar="TIME", help="How long it holds.  [default: 1h]")
@json_option
@store_option
def command(sub: str, role: str, expires_in: float, as_json: bool) -> None:
    """Print a token for a user.

    Functions see SUB as x-treadle-user-id.
    """
    try:
        from treadle.functions.tokens import user_token
    except ModuleNotFoundError as error:
        raise missing_service(error) from None
    try:
        user_token("", sub, role, expires_in)  # whether there can be such a token, before a store is touched
    except InvalidArgument as error:
        raise click.UsageError(f"{error}.") from None

    async def made(keys: Keys) -> str:
        return user_token(await keys.signing_secret(), sub, role, expires_in)

    token = with_keys(made)
    out = Out()
    if as_json:
        out.json({"sub": sub, "role": role, "token": token})
    else:
        out.line(token)
    out.flush()
