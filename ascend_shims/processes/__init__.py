"""The processes on this machine that carry shims, each speaking for itself.

A process with shims listens on an abstract Unix socket and answers with a
report read from its own bindings at that moment. The kernel removes the socket
with the process, so there is no record that could outlive it or be taken for
another process's.
"""
