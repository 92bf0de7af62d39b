"""Where a holtd with the native runtime lives, and whose it is: ours, or an ordinary user's."""
import os
import shutil
import sys
import tempfile

import pytest

from daemon import ASAN, BUILD, ROOT, native

sys.path.insert(0, f"{ROOT}/tests/tools")

import as_user  # noqa: E402

MODES = {"own": None, "rootless": {}, "ranges": {"ranges": True}, "delegated": {"ranges": True, "cgroups": True}}
if ASAN:  # a sanitized helper that is parked in a user's cgroup ends with status 99 when it clones; driver_native-delegated runs
    del MODES["delegated"]


class Home:
    """A directory, and who it belongs to."""

    def __init__(self, mode):
        try:
            self.user = as_user.User(BUILD, **MODES[mode]) if MODES[mode] is not None else None
        except as_user.Skip as e:
            pytest.skip(str(e))
        self.path = tempfile.mkdtemp(prefix="holt-native.", dir="/tmp")
        if self.user:
            os.chown(self.path, self.user.uid, self.user.uid)

    def native(self, *args):
        return native(self.path, *args, user=self.user)

    def close(self):
        if self.user:
            self.user.close()
        shutil.rmtree(self.path, ignore_errors=True)
