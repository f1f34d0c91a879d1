"""Stands in for PlatformIO's tool-scons package: runs the SCons of this Python, from PyPI."""

import sys

try:
    from SCons.Script import main
except ImportError:
    sys.exit(f"SCons is not installed for {sys.executable}: run `pip install scons==4.11.1` there.")

main()
