"""What is left in the process, outside of upstream."""

from __future__ import annotations

from .leak import Leak

__all__ = ["PROCESS_LEAKS"]

PROCESS_LEAKS = {
    # Imports.
    "a hook stays in sys.meta_path": Leak(
        "sys.meta_path.append(Unset())", "sys.meta_path", "new", "Unset"
    ),
    "sys.meta_path is another list": Leak(
        "sys.meta_path = list(sys.meta_path)",
        "sys.meta_path",
        "other-object",
        at_import=True,
    ),
    "a hook stays in sys.path_hooks": Leak(
        "sys.path_hooks.append(wrapper)", "sys.path_hooks", "new", "wrapper"
    ),
    "an entry stays in sys.path": Leak(
        "sys.path.append('/leaked')", "sys.path", "new", "'/leaked'"
    ),
    "a module is replaced": Leak(
        "sys.modules['UP.reloaded'] = types.ModuleType('UP.reloaded')",
        "UP.reloaded",
        "other-object",
        "another module",
    ),
    "a module is evicted": Leak(
        "del sys.modules['UP.evicted']", "UP.evicted", "gone", "sys.modules"
    ),
    "a module of somebody else is evicted": Leak(
        "sys.modules.pop('colorsys')", "sys.modules:colorsys", "gone"
    ),
    "a module is imported": Leak("import UP.late", "UP.late", "imported", "imported"),
    # The process.
    "a variable stays in the environment": Leak(
        "os.environ['LEAKED'] = '1'", "os.environ:LEAKED", "new", "'1'"
    ),
    "a variable is changed": Leak(
        "os.environ['PYTHONHASHSEED'] = '1'",
        "os.environ:PYTHONHASHSEED",
        "other-value",
        "was '0' and is '1'",
    ),
    "a log handler stays": Leak(
        "import logging; logging.getLogger().addHandler(logging.NullHandler())",
        "logging:root.handlers",
        "new",
        "NullHandler",
    ),
    "a log level stays": Leak(
        "import logging; logging.getLogger('UP.listed').setLevel(10)",
        "logging:UP.listed.level",
        "other-value",
        "was 0 and is 10",
    ),
    "a log filter stays": Leak(
        "import logging; logging.getLogger('UP.listed').addFilter(wrapper)",
        "logging:UP.listed.filters",
        "new",
        "wrapper",
    ),
    "a stranger's logger is configured": Leak(
        "import logging; logging.getLogger('stranger').propagate = False",
        "logging:stranger",
        "new",
    ),
    "a warnings filter stays": Leak(
        "import warnings; warnings.simplefilter('ignore', BytesWarning)",
        "warnings.filters",
        "new",
        "ignore",
    ),
    "warnings are shown elsewhere": Leak(
        "import warnings; warnings.showwarning = wrapper",
        "warnings.showwarning",
        "other-object",
    ),
    "a thread stays": Leak(
        "import threading; threading.Thread(target=threading.Event().wait, "
        "daemon=True, name='leaked').start()",
        "threads:leaked",
        "new",
    ),
    "a signal handler stays": Leak(
        "import signal; signal.signal(signal.SIGUSR2, wrapper)",
        "signal handlers:SIGUSR2",
        "other-kind",
        "wrapper",
    ),
    "something is registered to run at exit": Leak(
        "import atexit; atexit.register(wrapper)", "atexit callbacks", "other-value"
    ),
    "sys.excepthook stays": Leak(
        "sys.excepthook = wrapper", "sys.excepthook", "other-kind", "wrapper"
    ),
    "a name stays in builtins": Leak(
        "import builtins; builtins.leaked = 1", "builtins:leaked", "new", "1"
    ),
    "builtins.__import__ is replaced": Leak(
        "import builtins; real = builtins.__import__; "
        "builtins.__import__ = lambda *a, **k: real(*a, **k)",
        "builtins:__import__",
        "other-kind",
        "<lambda>",
    ),
    "a file stays open": Leak(
        "KEPT.append(open('/etc/hostname'))", "open files:/etc/hostname", "new"
    ),
    "a pickle reducer stays": Leak(
        "import copyreg; copyreg.dispatch_table[a.Held] = wrapper",
        "copyreg.dispatch_table:[UP.a:Held]",
        "new",
        "wrapper",
    ),
    "collection of garbage is switched off": Leak(
        "import gc; gc.disable()", "gc.isenabled()", "other-value"
    ),
    "the working directory is another": Leak(
        "os.chdir('/')", "os.getcwd()", "other-value", "'/'"
    ),
    "a trace function stays": Leak(
        "sys.setprofile(wrapper)", "sys.getprofile()", "other-kind", "wrapper"
    ),
    # Elsewhere.
    "a function of C is replaced": Leak(
        "import time; real = time.sleep; time.sleep = lambda *a: real(*a)",
        "time:sleep",
        "other-kind",
        "<lambda>",
    ),
    "a function of Python is replaced": Leak(
        "import textwrap; f = textwrap.dedent; textwrap.dedent = lambda *a: f(*a)",
        "textwrap:dedent",
        "other-object",
        "<lambda>",
    ),
    "a class of Python is replaced": Leak(
        "import subprocess; subprocess.Popen = type('P', (subprocess.Popen,), {})",
        "subprocess:Popen",
        "other-object",
        "P",
    ),
    "a class of Python gets a method": Leak(
        "import json; json.JSONEncoder.leaked = wrapper",
        "json:JSONEncoder.leaked",
        "new",
        "wrapper",
    ),
    "a function is put into a module of Python": Leak(
        "os.leaked = wrapper", "os:leaked", "new", "wrapper"
    ),
    "a class is taken out of a module of Python": Leak(
        "import queue; del queue.LifoQueue", "queue:LifoQueue", "gone", "LifoQueue"
    ),
    "a module is made up": Leak(
        "sys.modules['ghost'] = types.ModuleType('ghost')",
        "sys.modules:ghost",
        "new",
        "module ghost",
    ),
    "a module gets another name": Leak(
        "sys.modules['os.ghost'] = sys", "sys.modules:os.ghost", "new", "module sys"
    ),
    # What the system keeps.
    "a child runs on": Leak(
        "import subprocess; KEPT.append(subprocess.Popen(['sleep', '600']))",
        "child processes:sleep",
        "new",
    ),
    "files get other permissions": Leak(
        "os.umask(0o77)", "umask", "other-value", "is '0077'"
    ),
    "a limit is lowered": Leak(
        "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, "
        "(200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))",
        "limit RLIMIT_NOFILE",
        "other-value",
        "(200,",
    ),
    "a timer is set": Leak(
        "import signal; signal.signal(signal.SIGALRM, signal.SIG_IGN); "
        "signal.setitimer(signal.ITIMER_REAL, 5000, 7)",
        "timer ITIMER_REAL",
        "other-value",
        "every 7 s",
    ),
    "threads get a trace function": Leak(
        "import threading; threading.settrace(wrapper)",
        "threading._trace_hook",
        "other-kind",
        "wrapper",
    ),
    "threads get a profile function": Leak(
        "import threading; threading.setprofile(wrapper)",
        "threading._profile_hook",
        "other-kind",
        "wrapper",
    ),
    "faults are handled": Leak(
        "import faulthandler; faulthandler.enable()",
        "faulthandler.is_enabled()",
        "other-value",
    ),
    "something is called around a fork": Leak(
        "os.register_at_fork(before=wrapper)",
        "at-fork callbacks:pp_leaky.something_is_called_around_a_fork:wrapper",
        "new",
        "wrapper",
    ),
    "arguments are added": Leak(
        "sys.argv.append('leaked')", "sys.argv", "new", "'leaked'"
    ),
    "a timeout of sockets stays": Leak(
        "import socket; socket.setdefaulttimeout(3)",
        "_socket.getdefaulttimeout()",
        "other-value",
        "is 3.0",
    ),
}
