"""The hook side: the spool in, the answer out. No third-party module, no heavy standard one."""
