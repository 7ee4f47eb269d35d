"""Which files may compile after they are imported: those, and no others, are constructed in their build, too."""

import pytest

from harness.catalog import declared, modules

FROM = "from torch.utils.cpp_extension import load_inline\n"
AT_IMPORT = [
    FROM + "ext = load_inline(name='a')",
    FROM + "exts = [load_inline(name=name) for name in 'ab']",
    FROM + "if True:\n    ext = load_inline(name='a')",
    "from torch.utils.cpp_extension import load_inline as compiled\next = compiled(name='a')",
    "from torch.utils import cpp_extension\next = cpp_extension.load(name='a')",
    "import torch.utils.cpp_extension as cpp\next = cpp.load_inline(name='a')",
    "import torch.utils.cpp_extension\next = torch.utils.cpp_extension.load_inline(name='a')",
    '"""A docstring about load_inline."""\n' + FROM + "ext = load_inline(name='a')",
    FROM + "ext = load_inline(name='a')\ndef forward(x):\n    return ext.tail(x)",
]
LATER = [
    FROM + "def make():\n    return load_inline(name='a')",
    FROM + "make = lambda: load_inline(name='a')",
    FROM + "made = (load_inline(name=name) for name in 'ab')",
    FROM + "make = load_inline",
    FROM + "import functools\nmake = functools.partial(load_inline, name='a')",
    FROM + "class Made:\n    def __init__(self):\n        self.ext = load_inline(name='a')",
    "from torch.utils.cpp_extension import load_inline as compiled\ndef make():\n    return compiled(name='a')",
    "from torch.utils import cpp_extension as cpp\ndef make():\n    return cpp.load_inline(name='a')",
    "from torch.utils import cpp_extension\nmake = getattr(cpp_extension, 'load_inline')",
    "from torch.utils.cpp_extension import *",
    "def make():\n    from torch.utils.cpp_extension import load_inline\n    return load_inline(name='a')",
    "import importlib\nmake = importlib.import_module('torch.utils.cpp_extension').load_inline",
    "import torch\ndef make():\n    return torch.utils.cpp_extension.load(name='a')",
    "exec('from torch.utils import cpp_extension')",
]


@pytest.mark.parametrize("source", AT_IMPORT)
def test_calls_at_import_are_all_there_is(source):
    assert not declared.compiles_later(modules.parsed(source.encode(), "file.py"))


@pytest.mark.parametrize("source", LATER)
def test_whatever_else_mentions_a_compiler_may_call_it_later(source):
    assert declared.compiles_later(modules.parsed(source.encode(), "file.py"))
