// The widest float vector with fused multiply-add that the compiler was told this machine has: 16 lanes (AVX-512),
// 8 (AVX2 with FMA), 4 (NEON); kLanes is 1 where there is none, and the kernels then use plain register tiles.
#pragma once

#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
#include <immintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace rlt::kernels {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
constexpr int kTileRows = 5, kTileVectors = 4;  // 20 sums + 4 operands of 32 registers
using Vector = __m512;
inline Vector load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, Vector v) { _mm512_storeu_ps(p, v); }
inline Vector broadcast(float x) { return _mm512_set1_ps(x); }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
#elif defined(__AVX2__) && defined(__FMA__)
constexpr int kLanes = 8;
constexpr int kTileRows = 4, kTileVectors = 2;  // 8 sums + 2 operands + 1 of 16 registers
using Vector = __m256;
inline Vector load(const float* p) { return _mm256_loadu_ps(p); }
inline void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
inline Vector broadcast(float x) { return _mm256_set1_ps(x); }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
#elif defined(__ARM_NEON) && defined(__aarch64__)
constexpr int kLanes = 4;
constexpr int kTileRows = 5, kTileVectors = 4;
using Vector = float32x4_t;
inline Vector load(const float* p) { return vld1q_f32(p); }
inline void store(float* p, Vector v) { vst1q_f32(p, v); }
inline Vector broadcast(float x) { return vdupq_n_f32(x); }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return vfmaq_f32(c, a, b); }
#else
constexpr int kLanes = 1;
constexpr int kTileRows = 4, kTileVectors = 4;
using Vector = float;
inline Vector load(const float* p) { return *p; }
inline void store(float* p, Vector v) { *p = v; }
inline Vector broadcast(float x) { return x; }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return __builtin_fmaf(a, b, c); }
#endif

}  // namespace rlt::kernels
