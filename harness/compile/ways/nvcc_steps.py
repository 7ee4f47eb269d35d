"""The commands that one call of nvcc consists of, to run one by one. Standard library only."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

from harness.errors import AssayError


class PassFailed(AssayError, RuntimeError):
    """A compiler refuses, or writes what is not understood; the text says what, `output` all that it printed."""

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output


class Steps:
    """The commands of one nvcc call, as `nvcc --dryrun` prints them, with intermediate files in `folder`."""

    def __init__(self, nvcc: str, arguments: list[str], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        command = [nvcc, *arguments, "--dryrun", "--keep", "--keep-dir", str(folder)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise PassFailed(done.stdout[-500:])
        self.environment = dict(os.environ)
        self.passes: list[str] = []
        for line in done.stdout.splitlines():
            text = line.removeprefix("#$ ")
            assignment = re.fullmatch(r"([A-Z_]+)=(.*)", text)
            if assignment:
                self.environment[assignment[1]] = assignment[2].strip()
            elif line.startswith("#$ ") and not text.startswith("rm "):
                self.passes.append(text)

    def run(self, command: str) -> None:
        """Raises PassFailed where it fails."""
        done = subprocess.run(command, shell=True, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            said = done.stdout + done.stderr
            raise PassFailed(f"{command.split()[0]}: {said[-1500:]}", said)

    def preprocessed(self, option: str) -> list[str]:
        """What the preprocessing passes, of the host and of the device, write with `option`. Raises PassFailed."""
        said = []
        for command in (command for command in self.passes if " -E " in command):
            self.run(command.replace(" -E ", f" {option} "))
            said.append(Path(shlex.split(command)[-1]).read_text(errors="replace"))
        return said

    def host_words(self) -> list[str]:
        """The host compiler's own pass as words, less its input (the text that cudafe++ wrote) and output."""
        words = shlex.split(self.passes[-1])
        if "-c" not in words or words[-2] != "-o":
            raise PassFailed("the last step is no host compilation")
        return words[:-3]
