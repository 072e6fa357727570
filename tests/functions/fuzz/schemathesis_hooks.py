"""What schemathesis is told of this API; loaded by its own process."""

import schemathesis
from tests.functions.fuzz.cron_expressions import cron_expressions

schemathesis.openapi.format("cron", cron_expressions())
