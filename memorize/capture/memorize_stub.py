"""Start of the installed hook (``install.py`` writes it as ``memorize_hook.py``): runs its neighbour's compiled code.

Python compiles the file it is given at every start, 6 ms for the whole hook; unmarshalling takes 0.1. The compiled
file names the interpreter's magic number and its own crc; another Python, or a damaged file, uses the source instead.
"""

import marshal
import sys
import zlib

try:
    try:
        with open(__file__[:-2] + "code", "rb", 0) as file:
            raw = file.read()
        if raw[:4] != sys.modules["_frozen_importlib_external"].MAGIC_NUMBER or int(raw[4:12], 16) != zlib.crc32(
            raw[12:]
        ):
            raise ValueError
        code = marshal.loads(raw[12:])
    except Exception:
        with open(__file__[:-2] + "source", "rb", 0) as file:
            code = compile(file.read(), __file__, "exec")
    exec(code)
finally:
    (sys.modules.get("posix") or sys.modules["nt"])._exit(0)
