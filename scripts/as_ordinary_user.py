"""Run a command as an ordinary user, whom root has made up: `sudo python scripts/as_ordinary_user.py COMMAND ...`.

Whoever is no root is ordinary enough. The user has a home and temporary folder of its own, removed afterwards, and gets
through to the checkout and its Python wherever they lie. Where root may not do this (a container without CAP_SYS_ADMIN,
say), a sentence says so, nothing is run, and the exit status is 0.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.processes import folders
from harness.sandbox import namespaces
from harness.sandbox.syscalls import mount, unshare

ROOT = Path(__file__).resolve().parent.parent
# Nobody's, as a rule.
USER = 12345


def main() -> int:
    """Run the command; its exit status."""
    command = sys.argv[1:]
    if os.geteuid() != 0:
        return subprocess.run(command, check=False).returncode
    try:
        see_to_passage()
    except OSError as error:
        print(f"skipped, for want of an ordinary user: {error}")
        return 0
    home = Path(tempfile.mkdtemp(prefix="assay-user-"))
    os.chown(home, USER, USER)
    places = {"HOME": str(home), "TMPDIR": str(home), "ASSAY_CACHE": str(home / "cache")}
    environment = os.environ | places | {"USER": "ordinary", "LOGNAME": "ordinary"}
    try:
        return subprocess.run(
            command, env=environment, user=USER, group=USER, extra_groups=[], umask=0o022, check=False
        ).returncode
    finally:
        folders.remove_at_end(home)


def see_to_passage() -> None:
    """Open the way to the checkout and to Python in a view of mounts of our own. Raises OSError."""
    unshare(namespaces.CLONE_NEWNS, "mnt")
    mount("none", "/", "", namespaces.MS_REC | namespaces.MS_PRIVATE)
    paths = {str(path) for path in (ROOT, (ROOT / ".venv").resolve(), Path(sys.base_prefix).resolve()) if path.exists()}
    namespaces.open_locked(paths)
    if closed := namespaces.unreadable(sorted(paths)):
        raise OSError(f"{closed} is closed to other users")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        # The command had it, too, and has said what there is to say.
        sys.exit(130)
