"""The one-time code of a pairing: ``7-cedar-orbit-42``. Two words and a number are the secret, good for one guess."""

from __future__ import annotations

import secrets
import unicodedata
from typing import Final, NamedTuple

PLATES: Final = 99
_NUMBERS: Final = 90
WORDS: Final = (
    "acorn amber anchor apple arrow autumn bamboo banjo basil beacon bicycle birch bison bonfire bottle breeze "
    "bridge bronze bubble butter cabin cactus camel candle canyon carbon castle cedar cello cherry circle citrus "
    "clover cobalt comet copper coral cotton cricket crystal dahlia desert dolphin dragon drum eagle echo ember "
    "engine fabric falcon feather fern fiddle flint forest fossil fountain galaxy garden garnet ginger glacier "
    "granite guitar hammer harbor harvest hazel helmet heron honey horizon indigo island ivory jacket jasmine "
    "jungle juniper kettle kite lagoon lantern laurel lemon lichen linen lizard lotus magnet mango maple marble "
    "meadow melon meteor mirror mosaic mountain nectar needle nickel nutmeg oasis ocean olive onyx orbit orchid "
    "otter oyster paper pebble pepper piano pilot planet plum pollen prairie prism pumpkin quartz rabbit raven "
    "ribbon river"
).split()


class Code(NamedTuple):
    """``plate`` is public: it tells the device that is meant on a network. Only the whole text is the secret."""

    plate: int
    text: str


def new_code() -> Code:
    """Return a new code; 1.4 million are equally likely, whatever its plate."""
    plate = 1 + secrets.randbelow(PLATES)
    words = f"{secrets.choice(WORDS)}-{secrets.choice(WORDS)}"
    return Code(plate, f"{plate}-{words}-{10 + secrets.randbelow(_NUMBERS)}")


def parse_code(text: str) -> Code | None:
    """Return the code that a person typed, whatever the case and what stands between its parts; None for no code."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    parts = "".join(one if one.isalnum() else " " for one in folded).split()
    if len(parts) != 4 or not all(part.isascii() for part in parts):
        return None
    plate, one, other, number = parts
    if not plate.isdigit() or not number.isdigit() or not 1 <= int(plate) <= PLATES or len(number) != 2:
        return None
    if one not in WORDS or other not in WORDS:
        return None
    return Code(int(plate), f"{int(plate)}-{one}-{other}-{number}")
