"""A process that runs the program on damaged files, with limits on time and memory."""

import faulthandler
import multiprocessing
import os
import sys
import time
import warnings
from pathlib import Path

from tests.fuzz.damage import case, intact
from tests.fuzz.program import run_command
from tests.fuzz.seeds import FAMILIES, SEEDS

SECONDS, BYTES = 20, 1 << 30
SLOW, LARGE, HUNG = f"over {SECONDS} s", "over 1 GB", "hung"
IDLE_SECONDS = 30 * SECONDS  # by the clock, for a process that waits instead of computing
TICKS = os.sysconf("SC_CLK_TCK")  # of processor time per second


class Redirected:
    """Standard output and error of this process, in files, including what C libraries write."""

    def __init__(self):
        self.files = [Path(name).open("w+b", buffering=0) for name in ("stdout", "stderr")]  # noqa: SIM115 - to the end
        for file, stream in zip(self.files, (sys.stdout, sys.stderr), strict=True):
            os.dup2(file.fileno(), stream.fileno())

    def __call__(self):
        sys.stdout.flush()
        sys.stderr.flush()
        return [self._read(file) for file in self.files]

    @staticmethod
    def _read(file):
        text = os.pread(file.fileno(), 1 << 30, 0).decode(errors="replace")
        file.seek(0)
        file.truncate()
        return text


def work(pipe, number, folder):
    """Run one file after another in a folder of this process."""
    os.chdir(folder)
    captured = Redirected()
    faulthandler.enable()

    def run(made):
        made.save(folder)
        return [run_command(command, captured) for command in made.commands]

    pipe.send([run(intact(seed)) for seed in SEEDS[:6]])  # so that imports do not count for a damaged file
    warnings.simplefilter("error")
    while True:
        pipe.send(run(case(number, pipe.recv(), (*SEEDS, *FAMILIES))))


class Worker:
    """A process that runs damaged files, and is replaced if it dies or has to be killed."""

    def __init__(self, number, folder):
        self.number = number
        self.folder = folder
        self._start()

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=work, args=(other, self.number, self.folder), daemon=True)
        self.process.start()
        other.close()
        self.pipe.recv()

    def run(self, index):
        """Return the outcome of each command on a file, and its output."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")  # reset the peak of memory
        self.pipe.send(index)
        started, used, excess = time.monotonic(), self._seconds(), None
        while excess is None and not self.pipe.poll(0.02):
            if self._seconds() - used > SECONDS:
                excess = SLOW
            else:
                excess = HUNG if time.monotonic() - started > IDLE_SECONDS else self._large()
        try:
            outcomes = None if excess else self.pipe.recv()
        except EOFError:
            self.process.join()
            excess = f"process ended with {self.process.exitcode}"
        excess = excess or self._large()
        if excess is None:
            return outcomes
        self.stop()
        story = Path(self.folder, "stderr").read_text(errors="replace")
        self._start()
        return [(excess, story)]

    def stop(self):
        self.process.kill()
        self.process.join()

    def _seconds(self):
        """Return the processor time of the process, which does not depend on other work of the machine."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended
            return 0.0
        return (int(fields[11]) + int(fields[12])) / TICKS

    def _large(self):
        try:
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        except OSError:  # the process has ended
            return None
        kilobytes = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)
        return LARGE if kilobytes * 1024 > BYTES else None
