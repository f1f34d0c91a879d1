"""A GPU through its driver's library, libcuda.so.1: no toolkit is installed.

The functions are those of NVIDIA's driver interface (CUDA Driver API), which keeps them: a library
of any version has them by these names.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from dataclasses import dataclass

from rltools_host.errors import BoardError, LinkLostError, MissingToolError, RltError

LIBRARIES = ("libcuda.so.1", "nvcuda.dll")
OLDEST_DRIVER = 11010  # CUDA 11.1, of 2020, which knows the instructions (build/gpu.py)
OLDEST_CAPABILITY = (7, 5)
OUT_OF_MEMORY, NO_DEVICE = 2, 100
# Attributes of a device, and of a function.
CAPABILITY_MAJOR, CAPABILITY_MINOR, MULTIPROCESSORS, SHARED_BYTES = 75, 76, 16, 97
THREADS_OF_MULTIPROCESSOR = 39
# Of each thread, also of those that functions called by a pointer take, which no assembler knows.
LIMIT_OF_STACK, STACK_BYTES = 0, 8192
DYNAMIC_SHARED_BYTES = 8
JIT_MAX_REGISTERS, JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES, LOG_BYTES = 0, 5, 6, 4096
WITHOUT_SETTING = 49152 - 16384  # shared memory that a launch may ask for without an attribute
SIGNATURES: dict[str, tuple[type, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuDevicePrimaryCtxRelease_v2": (c_int,),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxSetLimit": (c_int, c_size_t),
    "cuCtxSynchronize": (),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemcpyHtoD_v2": (c_uint64, c_char_p, c_size_t),
    "cuMemcpyDtoH_v2": (c_void_p, c_uint64, c_size_t),
    "cuModuleLoadDataEx": (
        *(POINTER(c_void_p), c_char_p, c_uint, POINTER(c_int), POINTER(c_void_p)),
    ),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuModuleGetGlobal_v2": (POINTER(c_uint64), POINTER(c_size_t), c_void_p, c_char_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuLaunchKernel": (
        c_void_p,
        *(c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint),
        *(c_void_p, POINTER(c_void_p), c_void_p),
    ),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
}


class OutOfGpuMemoryError(BoardError):
    """The GPU has less memory left than was asked for."""


@dataclass(frozen=True)
class GpuInfo:
    """What a GPU and its driver say of themselves."""

    name: str
    driver: int  # of CUDA: 1000 times its major version, and 10 times its minor one
    capability: tuple[int, int]
    shared_bytes: int  # that a block may have
    resident_threads: int  # for which the driver keeps stacks

    @property
    def driver_version(self) -> str:
        return f"{self.driver // 1000}.{self.driver % 1000 // 10}"


@functools.cache
def library() -> ctypes.CDLL:
    """Return the driver's library; raise MissingToolError where there is none."""
    for name in LIBRARIES:
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        for function, arguments in SIGNATURES.items():
            getattr(found, function).argtypes = arguments
        return found
    raise MissingToolError(
        "no NVIDIA driver is installed (libcuda.so.1), which --board cuda needs: install it, or "
        "train with --board host, which ends in the same bits"
    )


def call(function: str, *arguments: object) -> None:
    """Call a function of the library; raise LinkLostError, or what its code says."""
    code = getattr(library(), function)(*arguments)
    if code == 0:
        return
    name = c_char_p()
    library().cuGetErrorName(code, byref(name))
    said = (name.value or b"an error without a name").decode(errors="replace")
    if code == OUT_OF_MEMORY:
        raise OutOfGpuMemoryError(f"the GPU has too little memory left ({said})")
    if code == NO_DEVICE:
        raise MissingToolError(f"the NVIDIA driver finds no GPU ({said}): train with --board host")
    raise LinkLostError(f"the GPU gave up: {function} returned {code}, {said}")


class GpuMemory:
    """Memory of the GPU, with its address there."""

    def __init__(self, size: int) -> None:
        self.size = size
        address = c_uint64()
        call("cuMemAlloc_v2", byref(address), size)
        self.address = address.value

    def write(self, data: bytes) -> None:
        call("cuMemcpyHtoD_v2", self.address, data, len(data))

    def read(self, size: int) -> bytes:
        """Return the first bytes."""
        data = (c_char * size)()
        call("cuMemcpyDtoH_v2", data, self.address, size)
        return bytes(data)

    def free(self) -> None:
        with contextlib.suppress(LinkLostError):  # a GPU that gave up has nothing to free
            call("cuMemFree_v2", self.address)


def at(memory: GpuMemory, offset: int) -> c_uint64:
    """Return an address within memory, for a kernel."""
    return c_uint64(memory.address + offset)


class Gpu:
    """The first GPU, and a program on it, until it is closed."""

    def __init__(self) -> None:
        call("cuInit", 0)
        version, device = c_int(), c_int()
        call("cuDriverGetVersion", byref(version))
        call("cuDeviceGet", byref(device), 0)
        self._device = device.value
        name = ctypes.create_string_buffer(256)
        call("cuDeviceGetName", name, len(name), self._device)
        self.info = GpuInfo(
            name.value.decode(errors="replace"),
            version.value,
            (self._attribute(CAPABILITY_MAJOR), self._attribute(CAPABILITY_MINOR)),
            self._attribute(SHARED_BYTES),
            self._attribute(MULTIPROCESSORS) * self._attribute(THREADS_OF_MULTIPROCESSOR),
        )
        self._require_new_enough()
        context = c_void_p()
        call("cuDevicePrimaryCtxRetain", byref(context), self._device)
        call("cuCtxSetCurrent", context)
        call("cuCtxSetLimit", LIMIT_OF_STACK, STACK_BYTES)
        self._module = c_void_p()

    def _attribute(self, number: int) -> int:
        value = c_int()
        call("cuDeviceGetAttribute", byref(value), number, self._device)
        return value.value

    def _require_new_enough(self) -> None:
        info = self.info
        if info.driver < OLDEST_DRIVER:
            raise MissingToolError(
                f"the driver of {info.name} is of CUDA {info.driver_version}, and --board cuda "
                "needs one of CUDA 11.1 or later: install a newer driver"
            )
        if info.capability < OLDEST_CAPABILITY:
            raise MissingToolError(
                f"{info.name} has compute capability {info.capability[0]}.{info.capability[1]}, "
                "and --board cuda needs 7.5 or later: train with --board host"
            )

    def close(self) -> None:
        with contextlib.suppress(LinkLostError):
            if self._module:
                call("cuModuleUnload", self._module)
            call("cuDevicePrimaryCtxRelease_v2", self._device)

    def free_bytes(self) -> int:
        """Return the free memory; the stacks of a kernel's threads are yet to be taken of it."""
        free, total = c_size_t(), c_size_t()
        call("cuMemGetInfo_v2", byref(free), byref(total))
        return max(0, free.value - self.info.resident_threads * STACK_BYTES)

    def load(self, ptx: bytes, registers: int) -> None:
        """Load a program, which the driver compiles for so many registers of a thread."""
        log = ctypes.create_string_buffer(LOG_BYTES)
        options = (c_int * 3)(JIT_MAX_REGISTERS, JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES)
        values = (c_void_p * 3)(registers, ctypes.addressof(log), LOG_BYTES)
        try:
            call("cuModuleLoadDataEx", byref(self._module), ptx, 3, options, values)
        except LinkLostError as error:
            said = log.value.decode(errors="replace").strip()
            raise BoardError(
                f"the driver of {self.info.name} refused the program: {said or error}"
            ) from None

    def number(self, name: str) -> int:
        """Return a number of four bytes that the program has under this name."""
        address, size = c_uint64(), c_size_t()
        call("cuModuleGetGlobal_v2", byref(address), byref(size), self._module, name.encode())
        value = c_uint()
        call("cuMemcpyDtoH_v2", byref(value), address, 4)
        return value.value

    def launch(
        self,
        kernel: str,
        blocks: int,
        threads: int,
        shared_bytes: int,
        arguments: Sequence[GpuMemory | c_uint64 | int],
    ) -> None:
        """Begin to run a kernel. Memory is given by its address, and a number has four bytes."""
        function = c_void_p()
        call("cuModuleGetFunction", byref(function), self._module, kernel.encode())
        if shared_bytes > WITHOUT_SETTING:
            call("cuFuncSetAttribute", function, DYNAMIC_SHARED_BYTES, shared_bytes)
        values = [
            c_uint64(each.address)
            if isinstance(each, GpuMemory)
            else each
            if isinstance(each, c_uint64)
            else c_uint(each)
            for each in arguments
        ]
        pointers = (c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        grid = (blocks, 1, 1, threads, 1, 1)
        call("cuLaunchKernel", function, *grid, shared_bytes, None, pointers, None)

    def synchronize(self) -> None:
        """Wait for the end of all that was launched."""
        call("cuCtxSynchronize")


def connected_gpu() -> str | None:
    """Return the GPU's name, its driver and its free memory; None without one that can train."""
    try:
        with contextlib.closing(Gpu()) as gpu:
            free = f"{gpu.free_bytes() / 1e9:.1f} GB free"
            return f"{gpu.info.name}, CUDA {gpu.info.driver_version}, {free}"
    except RltError:
        return None
