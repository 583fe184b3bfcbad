"""Gives every test a new home with an agent, and cleans up after the test."""

import signal
import unittest

from programs import PATIENCE_SECONDS, Home, P


class Case(unittest.TestCase):
    def setUp(self) -> None:
        signal.signal(signal.SIGALRM, lambda *_: self.fail(f"over {PATIENCE_SECONDS} s"))
        signal.alarm(PATIENCE_SECONDS)
        self.addCleanup(signal.alarm, 0)
        self.home = Home()
        self.addCleanup(self.home.close)
        self.home.wait_for_the_end()

    def start(self, program: type[P], *flags: str) -> P:
        started = program(self.home, *flags)
        self.addCleanup(started.close)
        return started
