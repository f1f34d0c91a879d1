// Device tags for static multiple dispatch. A tag is empty, passed by value as the first argument,
// and stands in one inheritance chain: the overload for the nearest base of a device's tag is the
// one that is called.
#pragma once

namespace rlt {

// The reference implementation of every operation takes Generic; it runs anywhere.
struct Generic {};

// Arm Cortex-M with a single-precision floating-point unit that has fused multiply-add (M4F, M7,
// M33).
struct CortexM : Generic {};

// The instruction set's vectors on a laptop or workstation: AVX-512, AVX2 with FMA, or NEON.
struct HostSimd : Generic {};

// The same machine's BLAS for the products of large layers, HostSimd's kernels for everything else.
// The only tag whose results are not the reference's bits.
struct Blas : HostSimd {};

// The same with a second thread (core/run_both.h). What runs beside something else has one thread.
struct HostSimdThreads : HostSimd {
  using OneThread = HostSimd;
};

}  // namespace rlt
