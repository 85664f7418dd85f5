"""BLAS has one thread while a team works, whichever threads ask for it."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from omfb.core.linalg import threads
from omfb.core.linalg.threads import Team, products_in_one_thread, team


def blas_threads():
    return [
        library.get_num_threads()
        for library in ThreadpoolController().select(user_api="blas").lib_controllers
    ]


def in_another_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


@pytest.fixture
def before():
    """The threads of BLAS, which are two whatever the environment says."""
    with threadpool_limits(2):
        found = blas_threads()
        if max(found, default=1) < 2:
            pytest.skip("no BLAS that threadpoolctl knows")
        yield found


def within():
    with products_in_one_thread():
        return blas_threads()


def test_any_thread_may_ask(before):
    assert set(in_another_thread(within)) == {1}  # though this thread asked first
    assert blas_threads() == before
    assert set(within()) == {1}
    assert blas_threads() == before


def test_the_last_to_leave_gives_the_threads_back(before):
    entered, leave = threading.Event(), threading.Event()

    def stay():
        with products_in_one_thread():
            entered.set()
            leave.wait(60)

    other = threading.Thread(target=stay)
    with products_in_one_thread():
        other.start()
        entered.wait(60)
    assert set(blas_threads()) == {1}
    leave.set()
    other.join()
    assert blas_threads() == before


def test_a_team_has_its_threads_all_the_same(before):
    with team(10**9) as helpers:
        alone = helpers.n_threads
    with products_in_one_thread(), team(10**9) as helpers:
        assert helpers.n_threads == alone


def test_a_team_is_done_when_the_last_helper_is(monkeypatch):
    """Also if one has failed: what the others write into belongs to the caller again."""
    began, ended = threading.Barrier(3, timeout=30), []

    def task(at):
        began.wait()
        if at == 1:
            raise ZeroDivisionError
        time.sleep(0.2)
        ended.append(at)

    with ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr(threads, "_pool", lambda: pool)
        with pytest.raises(ZeroDivisionError):
            Team(3).run(task, 3)
        assert sorted(ended) == [0, 2]


def test_helpers_are_as_quiet_about_overflow_as_the_caller():
    """Of infinity in rows an error tells, and not a warning of whichever thread has met it."""
    both = threading.Barrier(2, timeout=30)
    told = []

    def task(at):
        both.wait()  # so that each thread takes one
        told.append((threading.get_ident(), np.geterr()["over"]))

    with np.errstate(over="ignore"):
        Team(2).run(task, 2)
    assert len({thread for thread, _ in told}) == 2
    assert [over for _, over in told] == ["ignore", "ignore"]
