"""A whole cluster in one thread: an asyncio loop with virtual time, a seed, and nodes that die.

Time moves only when nothing can run, and then to the next timer. Of the nodes that can run one is
drawn by the seed; inside a node callbacks keep their order, as asyncio promises. A killed node
runs nothing more, no `finally` either: a crash is not a cancellation. One seed gives one history,
in any process (with PYTHONHASHSEED fixed, where code iterates over sets of strings).
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from hashlib import blake2b
from itertools import count
from random import Random
from typing import Any, NoReturn, TypeVar, cast

T = TypeVar("T")

WORLD = "world"  # the node of `main`: outside of the cluster, never killed
STEPS_MAX = 2_000_000  # callbacks; more of them in one run is a livelock
CLOSES_MAX = 100  # a coroutine that awaits in `finally` must be closed again and again

# The loop's only way to know on whose behalf a callback runs: contexts are inherited by tasks.
_NODE: ContextVar[str] = ContextVar("node", default=WORLD)


class SimStalledError(RuntimeError):
    """Nothing can run and no timer is set, or callbacks run on without end."""


class SimTask(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address."""

    def __init__(
        self, coro: Any, *, loop: "SimLoop", number: int, context: Context | None = None
    ) -> None:
        self._number = number
        self.node = context.get(_NODE, WORLD) if context else _NODE.get()
        self.coro = coro
        super().__init__(coro, loop=loop, context=context)

    def __hash__(self) -> int:
        return self._number


class SimFuture(asyncio.Future[Any]):
    """As SimTask."""

    def __init__(self, *, loop: "SimLoop", number: int) -> None:
        self._number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class Ready:
    """Callbacks that can run, by node: asyncio appends to it, and no longer takes from it."""

    def __init__(self) -> None:
        self._by_node: dict[str, deque[Any]] = {}

    def __len__(self) -> int:
        return len(self._by_node)

    def append(self, handle: Any) -> None:
        node = node_of(handle)
        queue = self._by_node.get(node)
        if queue is None:
            self._by_node[node] = deque((handle,))
        else:
            queue.append(handle)

    def nodes(self) -> list[str]:
        """In the order in which they became able to run."""
        return list(self._by_node)

    def take(self, node: str) -> Any:
        queue = self._by_node[node]
        handle = queue.popleft()
        if not queue:
            del self._by_node[node]
        return handle

    def forget(self, node: str) -> None:
        self._by_node.pop(node, None)

    def clear(self) -> None:
        """The loop is closed."""
        self._by_node.clear()


class SimLoop(asyncio.BaseEventLoop):
    """Made by `run`. Times are milliseconds of virtual time since its start."""

    _ready: "Ready"
    _stopping: bool
    _scheduled: list[Any]
    """A heap of (when, number, timer): of two at one moment the one that was set first is first."""

    def __init__(self, seed: int, steps_max: int = STEPS_MAX) -> None:
        super().__init__()
        self._ready = Ready()
        self.random = Random(seed)
        """For everything that the run draws, faults included."""
        self.steps = 0
        self._steps_max = steps_max
        self._now_s = 0.0
        self._numbers = count(1)
        self._tasks: list[SimTask] = []  # strong: a task that is collected would run its `finally`
        self._dead: set[str] = set()
        self._paused_until_s: dict[str, float] = {}
        self._held: dict[str, list[Any]] = {}
        self._history = blake2b(digest_size=8)
        self.is_over = False
        """The world has ended, and only `finally` blocks run."""
        self.outside = Context()
        """The context of callbacks that belong to no node."""
        self.thread_ms: Callable[[], float] | None = None
        """Draws the ms that work given to a thread waits for its turn; None: there are no
        threads."""
        self.set_task_factory(cast(Any, SimLoop._make_task))

    # ---- what a scenario does

    def spawn(self, node: str, coro: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Starts *coro* on *node*; all that it starts belongs to the node too.

        A killed name stays dead: a restarted process gets a new name.
        """
        assert node not in self._dead, f"{node} is dead; a restart needs a name of its own"
        context = copy_context()
        context.run(_NODE.set, node)
        return self._make_task(coro, context)

    def kill(self, node: str) -> None:
        """SIGKILL. What runs right now on the node goes on to its next await, and no further."""
        assert node != WORLD, "main is no node"
        self._dead.add(node)
        self._ready.forget(node)
        self._scheduled = [one for one in self._scheduled if node_of(one[2]) != node]
        heapq.heapify(self._scheduled)
        self._held.pop(node, None)

    async def crash(self) -> NoReturn:
        """Kills the node that calls it. Never returns."""
        self.kill(current_node())
        await self.create_future()
        raise AssertionError("a dead node ran")

    def pause(self, node: str, ms: int) -> None:
        """SIGSTOP for *ms*: nothing runs there, time goes on, timers fire when it wakes."""
        until_s = self._now_s + ms / 1000
        self._paused_until_s[node] = max(until_s, self._paused_until_s.get(node, 0.0))
        self.call_at(self._paused_until_s[node], self._wake, node, context=self.outside)

    def is_dead(self, node: str) -> bool:
        return node in self._dead

    def is_paused(self, node: str) -> bool:
        return node in self._paused_until_s

    def trace(self, *facts: object) -> None:
        """Adds *facts* to the history that `digest` is taken of."""
        self._history.update(repr((round(self._now_s, 9), *facts)).encode())

    def digest(self) -> str:
        return self._history.hexdigest()

    # ---- what asyncio asks of a loop

    def time(self) -> float:
        return self._now_s

    def create_future(self) -> asyncio.Future[Any]:
        return SimFuture(loop=self, number=next(self._numbers))

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """In one piece at a moment drawn, on the node that asks; a call that was cancelled goes on,
        as in a thread."""
        assert self.thread_ms is not None, "no threads here: put a fake in the adapter's place"
        done = self.create_future()

        def in_one_piece() -> None:
            try:
                found = func(*args)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is for who asked
                _end(done, error, None)
            else:
                _end(done, None, found)

        self.call_later(self.thread_ms() / 1000, in_one_piece)
        return done

    def _make_task(self, coro: Any, context: Context | None = None) -> SimTask:
        task = SimTask(coro, loop=self, number=next(self._numbers), context=context)
        self._tasks.append(task)
        return task

    def _process_events(self, _events: Any) -> None:
        """There is no I/O."""

    def _write_to_self(self) -> None:
        """There is no other thread."""

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        if not self.is_over:
            super()._asyncgen_finalizer_hook(agen)  # type: ignore[misc]

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._scheduled, (when, next(self._numbers), timer))
        return timer

    def _run_once(self) -> None:
        """Until the loop is told to stop."""
        while not self._stopping:
            if not self._ready:
                self._jump_to_next_timer()
            self._fire_timers()
            handle = self._draw()
            if handle is None or handle._cancelled:
                continue
            self.steps += 1
            if self.steps > self._steps_max:
                raise SimStalledError(f"{self.steps} steps in {self._now_s} s of virtual time")
            handle._run()

    # ---- how it works

    def _jump_to_next_timer(self) -> None:
        scheduled = self._scheduled
        while scheduled and scheduled[0][2]._cancelled:
            heapq.heappop(scheduled)
        if not scheduled:
            raise SimStalledError("nothing can run and no timer is set")
        self._now_s = max(self._now_s, scheduled[0][0])

    def _fire_timers(self) -> None:
        scheduled = self._scheduled
        while scheduled and scheduled[0][0] <= self._now_s:
            timer = heapq.heappop(scheduled)[2]
            if not timer._cancelled:
                self._ready.append(timer)

    def _draw(self) -> Any:
        """The first callback of a node drawn from those that can run; None if none can."""
        nodes = self._ready.nodes()
        if not nodes:
            return None
        node = nodes[0]
        if len(nodes) > 1:
            node = nodes[int(self.random.random() * len(nodes))]
        handle = self._ready.take(node)
        if node in self._dead:
            return None
        if node in self._paused_until_s:
            self._held.setdefault(node, []).append(handle)
            return None
        return handle

    def _wake(self, node: str) -> None:
        if self._paused_until_s.get(node, self._now_s) <= self._now_s:
            self._paused_until_s.pop(node, None)
            for handle in self._held.pop(node, ()):
                self._ready.append(handle)

    def failures(self) -> list[BaseException]:
        """Returns the errors that tasks ended with and nobody looked at."""
        here = [task for task in self._tasks if task.node not in self._dead]
        ended = [task for task in here if task.done() and not task.cancelled()]
        unseen = [task.exception() for task in ended if cast(Any, task)._log_traceback]
        return [error for error in unseen if error is not None]

    def bury(self) -> None:
        """Closes what never ended. Its `finally` blocks run now, in a world that is over."""
        self.is_over = True
        for task in self._tasks:
            if not task.done():
                _close(task)
        self.close()
        self._tasks.clear()  # a library may know one for ever, and so this loop
        self._scheduled.clear()


def _close(task: SimTask) -> None:
    cast(Any, task)._log_destroy_pending = False
    for _ in range(CLOSES_MAX):
        with suppress(Exception, BaseExceptionGroup):
            task.coro.close()
            return


def node_of(handle: Any) -> str:
    node: str = handle._context.get(_NODE, WORLD)
    return node


def in_world(loop: SimLoop, ms: float, act: Callable[..., None], *args: Any) -> None:
    """*act* after *ms*, outside of every node: it happens though who asked for it dies."""
    loop.call_later(ms / 1000, act, *args, context=loop.outside)


def current_node() -> str:
    """The node on which the caller runs."""
    return _NODE.get()


def run(
    main: Callable[[SimLoop], Coroutine[Any, Any, T]], seed: int, *, steps_max: int = STEPS_MAX
) -> T:
    """Runs *main* to its end, which is the end of the world; look at what is left inside it.

    Raises what *main* raises, what any task ended with and nobody looked at, and what was reported
    to the loop; as a group if they are several, since which is the cause of the others is for the
    reader. Raises SimStalledError when *main* can never end.
    """
    loop = SimLoop(seed, steps_max)
    errors: list[BaseException] = []
    reported: list[BaseException] = []
    loop.set_exception_handler(lambda _loop, context: reported.append(_error_of(context)))
    try:
        result = loop.run_until_complete(main(loop))
    except (Exception, BaseExceptionGroup) as raised:  # noqa: BLE001 - told with the others
        errors.append(raised)
    finally:
        errors += [one for one in loop.failures() + reported if one not in errors]
        loop.set_exception_handler(lambda _loop, _context: None)
        loop.bury()
    if len(errors) > 1:
        raise BaseExceptionGroup("several errors ended the world", errors)
    for error in errors:
        raise error
    return result


def _error_of(context: dict[str, Any]) -> BaseException:
    error = context.get("exception")
    return error if isinstance(error, BaseException) else RuntimeError(context["message"])


class SimClock:
    """metasrv_base.clock.Clock on the loop's time. `offset_ms`: how far this node's wall clock
    is off.
    """

    def __init__(
        self,
        loop: SimLoop,
        *,
        epoch_ms: int = 1_700_000_000_000,
        offset_ms: int = 0,
        rate: float = 1.0,
    ) -> None:
        """*rate*: how fast `mono_ms` runs; 1.001 gains a millisecond a second. The wall clock is
        kept right by others (NTP), but for its offset."""
        self._loop = loop
        self.rate = rate
        self._wall_start_ms = epoch_ms + offset_ms

    def wall_ms(self) -> int:
        return self._wall_start_ms + round(self._loop.time() * 1000)

    def mono_ms(self) -> int:
        return round(self._loop.time() * 1000 * self.rate)

    async def sleep_ms(self, ms: int) -> None:
        woken = self._loop.create_future()
        timer = self._loop.call_later(ms / 1000 / self.rate, _wake, woken)
        try:
            await woken
        finally:
            timer.cancel()


def _end(waiting: "asyncio.Future[Any]", error: Exception | None, found: object) -> None:
    """Ends a wait, which may have been cancelled."""
    if waiting.done():
        return
    if error is None:
        waiting.set_result(found)
    else:
        waiting.set_exception(error)


def _wake(sleeper: "asyncio.Future[None]") -> None:
    """It may have been cancelled when its timer had fired already, on a node that stood still."""
    if not sleeper.done():
        sleeper.set_result(None)
