"""Every bound of the program, in one place, each with its reason.

The unit is the last part of the name. Producers keep to the plain limits; consumers accept, keep and relay
up to the ``RELAY`` limits, so that a newer program may raise the former without breaking an older one.
"""

from __future__ import annotations

from typing import Final

# Event (docs/format.md).
FORMAT: Final = 1
# Raise it whenever the same events may give other rows; digests of different versions are never compared.
FOLD_VERSION: Final = 2
HEADER_BYTES_MAX: Final = 8 * 1024
BODY_BYTES_MAX: Final = 1024 * 1024
RELAY_HEADER_BYTES_MAX: Final = 64 * 1024
RELAY_BODY_BYTES_MAX: Final = 16 * 1024 * 1024
NESTING_MAX: Final = 16
DEPS_MAX: Final = 200
KIND_CHARS_MAX: Final = 64
# 35 KB a request. All that one names is folded together, so a large erasure is several.
ERASE_IDS_MAX: Final = 1_000
# An event further ahead of the own counter than this is kept, but does not drag the counter with it.
LAMPORT_LEAP_MAX: Final = 2**32

# Segment: large enough that a year is a few hundred files, small enough to rewrite for an erasure.
SEGMENT_BYTES_MAX: Final = 16 * 1024 * 1024
SEGMENT_AGE_S_MAX: Final = 24 * 3600

# Spool and capture.
CAPTURE_BYTES_MAX: Final = 4 * 1024 * 1024
TEXT_CHARS_MAX: Final = 16 * 1024
OUTPUT_TAIL_CHARS_MAX: Final = 2 * 1024
DIFF_CHARS_MAX: Final = 2 * 1024
# So many spool files are one append, one fdatasync and one transaction, in which pages of the index are written once:
# against 256 it saves a tenth of the time of a backlog. Their bytes have a limit of their own.
INGEST_BATCH_FILES_MAX: Final = 1_024
# From so many on a second process reads and parses them ahead; to start one takes as long as ingesting some hundred.
BACKLOG_FILES_MIN: Final = 4_096
BAD_SPOOL_AGE_S_MAX: Final = 7 * 24 * 3600
TMP_SPOOL_AGE_S_MAX: Final = 3600

# Hook deadlines (DESIGN 6) and the size that every agent takes in whole.
HOOK_STDIN_S_MAX: Final = 5.0
SESSION_START_MS: Final = 300
PROMPT_MS: Final = 150
BEFORE_TOOL_MS: Final = 100
LATE_MARK_S: Final = 30
LEAN_CHILD_S_MAX: Final = 1.5
ANSWER_BYTES_MAX: Final = 9_500

# A session that goes on for days is consolidated at the end of a turn once so much is open: a crash, or a start of
# another session beside it, should not find a day's work unread.
STOP_OBSERVATIONS_MIN: Final = 60

# Recall.
HALF_LIFE_DAYS: Final = 14.0
CONTEXT_TOKENS: Final = 1_500
STANDING_ITEMS_MAX: Final = 20
EPISODES_MAX: Final = 3
HITS_MAX: Final = 5
# Rules at one command: more of them are read by nobody. Their text is put in front of every such command.
RULES_MAX: Final = 6
RULES_TOKENS: Final = 600
MEMORY_TEXT_CHARS_MAX: Final = 2_000

# Sessions side by side. One that said nothing for so long is not at work any more; of another device that is reckoned
# from the last that was heard of it, and what was heard longer ago than a working day is no news. An edit that was
# announced and never reported (refused, or the agent died) is soon forgotten.
LIVE_S: Final = 30 * 60
NEWS_S_MAX: Final = 12 * 3600
ANNOUNCED_S: Final = 5 * 60
WARNINGS_MAX: Final = 4

# Models. Real extractions took half a minute and more; the caps are what a busy day needs, and no more.
MODEL_DEADLINE_S: Final = 180
CALLS_PER_DAY: Final = 24
TOKENS_PER_DAY: Final = 400_000

# Packs: 64 MiB is the largest that is made; what others made is read up to four times that. Unpacked it is never whole
# in memory, so the bound on that only stops a stream that would not end.
PACK_BYTES_MAX: Final = 256 * 1024 * 1024
PACK_PLAIN_BYTES_MAX: Final = 8 * 1024 * 1024 * 1024

# Daemon.
IDLE_EXIT_S: Final = 30 * 60

# Peers. A frame is what one side must hold at once; before the other side has proved the store key it gets little. A
# turn bounds what a side that reads slowly holds up, and how long a lost connection can have been for nothing.
PEER_FRAME_BYTES_MAX: Final = 1024 * 1024
PEER_GREETING_BYTES_MAX: Final = 64 * 1024
PEER_EVENTS_BYTES: Final = 512 * 1024
PEER_TURN_BYTES: Final = 4 * 1024 * 1024
PEER_RANGES_BYTES: Final = 2 * 1024 * 1024
# Ids, heads and ranges that one turn of the other side may name.
PEER_ITEMS_MAX: Final = 400_000
PEER_ROUNDS_MAX: Final = 8
# No descent through 2^64 Lamport numbers takes half as many turns.
PEER_TURNS_MAX: Final = 64
PEER_IDLE_S: Final = 120.0
# In nobody's registry, and below the ports that systems give out by themselves.
PEER_PORT: Final = 29_117
