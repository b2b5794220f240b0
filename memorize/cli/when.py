"""How long ago something was, in a person's words."""

from __future__ import annotations

from memorize.clock import ago as ago
from memorize.clock import lasting as lasting
