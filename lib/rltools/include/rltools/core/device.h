// Devices for static multiple dispatch. A device is a small value, the first argument of every
// operation: a tag in one inheritance chain, where the overload for the nearest base is the one
// that is called. It may carry what its kernels work with, such as threads. A program makes its
// device once; everything below passes it on, or a base of it, and never makes one up.
#pragma once

namespace rlt {

// The reference implementation of every operation takes Generic; it runs anywhere.
struct Generic {};

// Arm Cortex-M with a single-precision floating-point unit that has fused multiply-add (M4F, M7,
// M33).
struct CortexM : Generic {};

// The instruction set's vectors on a laptop or workstation: AVX-512, AVX2 with FMA, or NEON; or
// those of WebAssembly.
struct HostSimd : Generic {};

}  // namespace rlt
