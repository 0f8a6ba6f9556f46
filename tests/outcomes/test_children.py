"""Children of every kind: what is patched in them, and by what."""

from __future__ import annotations

import sys
from ast import literal_eval

import pytest

from ..engine.world import World
from ..fresh import LONG, run

WORK = """
    import os

    def plain():
        import UP.a
        return UP.a.f(), UP.a.C().m()

    def registered():
        from ascend_shims.plugin import register
        register()
        return plain()

    def applied():
        import ascend_shims
        ascend_shims.apply()
        return plain()

    def reverted():
        import ascend_shims
        ascend_shims.revert()
        return plain()

    def answers():
        from ascend_shims.processes.address import listening
        return os.getpid() in listening()
"""
MAIN = """
    import multiprocessing, os, sys
    from concurrent.futures import ProcessPoolExecutor
    import ascend_shims, work

    def asked(context, *functions, **options):
        with context.Pool(1, **options) as pool:
            return [pool.apply(one) for one in functions]

    if __name__ == "__main__":
        spawn, fork, server = map(
            multiprocessing.get_context, ("spawn", "fork", "forkserver")
        )
"""


def said(up: World, body: str) -> str:
    """What a program prints whose main part is `body`."""
    up.write("work.py", WORK)
    path = up.write("main.py", f"{MAIN}\n{body}")
    env = {"PYTHONPATH": str(up.root), "PYTHONDONTWRITEBYTECODE": "1"}
    return run(sys.executable, path, env=env, cwd=up.root)


def test_a_fork_carries_what_its_parent_had_applied(up: World) -> None:
    """And answers for itself; what it reverts is its own affair."""
    body = """
        ascend_shims.apply()
        work.plain()
        print(asked(fork, work.plain, work.answers, work.reverted, work.answers))
        print(work.plain(), work.answers())
        ascend_shims.revert()
        print(asked(fork, work.plain, work.answers, work.applied, work.answers))
        print(work.plain(), work.answers())
    """
    assert said(up, body).splitlines() == [
        "[(10, 10), True, (1, 1), False]",
        "(10, 10) True",
        "[(1, 1), False, (10, 10), True]",
        "(1, 1) False",
    ]


def test_a_fork_before_anything_was_applied_applies_for_itself(up: World) -> None:
    body = """
        print(asked(fork, work.plain, work.applied, work.answers), work.answers())
    """
    assert said(up, body) == "[(1, 1), (10, 10), True] False\n"


def test_a_spawned_child_is_stock_until_it_applies_and_then_decides_alike(
    up: World,
) -> None:
    """vLLM's processes apply by its plugin; others by a call, or an initializer."""
    body = """
        from ascend_shims.plugin import register
        ascend_shims.apply()
        print(asked(spawn, work.plain, work.registered))
        print(asked(spawn, work.plain, initializer=register))
        with ProcessPoolExecutor(1, mp_context=spawn, initializer=register) as pool:
            import UP.a
            # By reference: the child runs what it has under that name.
            print(pool.submit(UP.a.f).result(), pool.submit(UP.a.C(2).m).result())
        ascend_shims.apply(disable=["one"])
        print(asked(spawn, work.registered, work.applied))
        ascend_shims.revert()
        print(asked(spawn, work.registered))
    """
    assert said(up, body).splitlines() == [
        "[(1, 1), (10, 10)]",
        "[(10, 10)]",
        "10 20",
        "[(1, 1), (1, 1)]",
        # After a revert the environment is as it was found: the child's default.
        "[(10, 10)]",
    ]


@pytest.mark.parametrize("started", ["before", "after"])
def test_children_of_a_fork_server_follow_the_environment_of_its_start(
    up: World, started: str
) -> None:
    """The server is a process of its own: it never has what its parent applied, and
    its children are given the environment that it was started with."""
    early = "asked(server, work.plain)" if started == "before" else "None"
    body = f"""
        {early}
        ascend_shims.apply(disable=["one"])
        print(asked(server, work.plain, work.applied))
    """
    expected = "[(1, 1), (10, 10)]" if started == "before" else "[(1, 1), (1, 1)]"
    assert said(up, body) == f"{expected}\n"


def test_a_fork_server_that_has_applied_passes_it_on(up: World) -> None:
    up.write("early.py", "import ascend_shims\nascend_shims.apply()\nimport UP.a\n")
    body = """
        server.set_forkserver_preload(["early"])
        print(asked(server, work.plain, work.answers, work.reverted, work.answers))
        print(asked(server, work.plain))
    """
    assert said(up, body) == "[(10, 10), True, (1, 1), False]\n[(10, 10)]\n"


def test_a_fork_while_another_thread_applies_has_each_gap_whole_or_not_at_all(
    up: World,
) -> None:
    """And either is reached from there. The child prints what it found."""
    body = """
        import signal, threading, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        # Not while it imports what it needs: no fork survives a half-done import.
        work.plain(), work.applied(), work.reverted()
        stop = threading.Event()

        def busy():
            while not stop.is_set():
                ascend_shims.apply()
                ascend_shims.revert()

        thread = threading.Thread(target=busy)
        thread.start()
        seen = set()
        for _ in range(20):
            read, write = os.pipe()
            pid = os.fork()
            if not pid:
                signal.alarm(LONG)
                found = work.plain()
                both = found, work.applied(), work.reverted(), work.answers()
                os.write(write, repr(both).encode())
                os._exit(0)
            os.close(write)
            with os.fdopen(read) as said:
                seen.add(said.read())
            os.waitpid(pid, 0)
        stop.set()
        thread.join()
        print(sorted(seen))
    """
    ways = [f"({found}, (10, 10), (1, 1), False)" for found in ("(1, 1)", "(10, 10)")]
    lines = said(up, body.replace("LONG", str(LONG)))
    assert set(literal_eval(lines)) <= set(ways), lines
