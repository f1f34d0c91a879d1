// The widest float vector with fused multiply-add of the compiler's target: 16
// lanes (AVX-512), 8 (AVX2 with FMA), 4 (NEON; WebAssembly's SIMD, fused or exact); kLanes is 1
// where there is none, and the kernels then use plain register tiles. RLT_VECTOR_BITS, where it is
// defined, is an upper bound.
#pragma once

#include <cstdint>

#ifndef RLT_VECTOR_BITS
#define RLT_VECTOR_BITS 512
#endif

#if defined(__AVX512F__) && RLT_VECTOR_BITS >= 512
#define RLT_VECTORS_AVX512
// GCC 12 takes the header's own undefined values for a mistake (its bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#elif defined(__AVX2__) && defined(__FMA__) && RLT_VECTOR_BITS >= 256
#define RLT_VECTORS_AVX2
#include <immintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__) && RLT_VECTOR_BITS >= 128
#define RLT_VECTORS_NEON
#include <arm_neon.h>
#elif defined(__wasm_simd128__) && RLT_VECTOR_BITS >= 128
#define RLT_VECTORS_WASM
#include <wasm_simd128.h>

#include "rltools/core/fma.h"
#endif

namespace rlt::kernels {

#if defined(RLT_VECTORS_AVX512)
constexpr int kLanes = 16;
constexpr int kTileRows = 5, kTileVectors = 4;  // 20 sums + 4 operands of 32 registers
using Vector = __m512;
inline Vector load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, Vector v) { _mm512_storeu_ps(p, v); }
inline Vector broadcast(float x) { return _mm512_set1_ps(x); }
inline Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
#elif defined(RLT_VECTORS_AVX2)
constexpr int kLanes = 8;
constexpr int kTileRows = 5, kTileVectors = 2;  // 10 sums + 2 operands + 1 of 16 registers
using Vector = __m256;
inline Vector load(const float* p) { return _mm256_loadu_ps(p); }
inline void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
inline Vector broadcast(float x) { return _mm256_set1_ps(x); }
inline Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
#elif defined(RLT_VECTORS_NEON)
constexpr int kLanes = 4;
constexpr int kTileRows = 5, kTileVectors = 4;
using Vector = float32x4_t;
inline Vector load(const float* p) { return vld1q_f32(p); }
inline void store(float* p, Vector v) { vst1q_f32(p, v); }
inline Vector broadcast(float x) { return vdupq_n_f32(x); }
inline Vector add(Vector a, Vector b) { return vaddq_f32(a, b); }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return vfmaq_f32(c, a, b); }
#elif defined(RLT_VECTORS_WASM)
constexpr int kLanes = 4;
constexpr int kTileRows = 5, kTileVectors = 2;  // for engines on processors with 16 registers
using Vector = v128_t;
inline Vector load(const float* p) { return wasm_v128_load(p); }
inline void store(float* p, Vector v) { wasm_v128_store(p, v); }
inline Vector broadcast(float x) { return wasm_f32x4_splat(x); }
inline Vector add(Vector a, Vector b) { return wasm_f32x4_add(a, b); }
#if defined(__wasm_relaxed_simd__)
inline Vector multiply_add(Vector a, Vector b, Vector c) {
  return wasm_f32x4_relaxed_madd(a, b, c);
}
#else
[[gnu::noinline]] inline Vector multiply_add_on_integers(Vector a, Vector b, Vector c) {
  float x[4], y[4], z[4];
  store(x, a), store(y, b), store(z, c);
  for (int lane = 0; lane < 4; lane++) z[lane] = math::exact_fma(x[lane], y[lane], z[lane]);
  return load(z);
}
inline Vector upper_half(Vector x) { return wasm_i64x2_shuffle(x, x, 1, 1); }
inline Vector multiply_add_lower(Vector a, Vector b, Vector c) {
  return wasm_f64x2_add(
      wasm_f64x2_mul(wasm_f64x2_promote_low_f32x4(a), wasm_f64x2_promote_low_f32x4(b)),
      wasm_f64x2_promote_low_f32x4(c));
}
// As math::fma_by_binary64().
inline Vector multiply_add(Vector a, Vector b, Vector c) {
  const Vector low = multiply_add_lower(a, b, c);
  const Vector high = multiply_add_lower(upper_half(a), upper_half(b), upper_half(c));
  // Masks of the low and the high word of a sum.
  constexpr std::uint32_t kDigits = math::kLowDigits, kMagnitude = ~math::kSignBit;
  constexpr std::uint32_t kSubnormalCount = math::kFirstNormalHigh - 1u;
  const Vector mask = wasm_u32x4_const(kDigits, kMagnitude, kDigits, kMagnitude);
  const Vector first = wasm_u32x4_const(math::kMiddle, 1u, math::kMiddle, 1u);
  const Vector count = wasm_u32x4_const(1u, kSubnormalCount, 1u, kSubnormalCount);
  const Vector least = wasm_u32x4_min(wasm_i32x4_sub(wasm_v128_and(low, mask), first),
                                      wasm_i32x4_sub(wasm_v128_and(high, mask), first));
  if (__builtin_expect(wasm_v128_any_true(wasm_u32x4_lt(least, count)), 0)) {
    return multiply_add_on_integers(a, b, c);
  }
  return wasm_i64x2_shuffle(wasm_f32x4_demote_f64x2_zero(low), wasm_f32x4_demote_f64x2_zero(high),
                            0, 2);
}
#endif
#else
constexpr int kLanes = 1;
constexpr int kTileRows = 4, kTileVectors = 4;
using Vector = float;
inline Vector load(const float* p) { return *p; }
inline void store(float* p, Vector v) { *p = v; }
inline Vector broadcast(float x) { return x; }
inline Vector add(Vector a, Vector b) { return a + b; }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return __builtin_fmaf(a, b, c); }
#endif

// The first Count numbers of a vector, of at least one and less than all; the others are zero.
#if defined(RLT_VECTORS_AVX512)
template <int Count>
inline Vector load_first(const float* p) {
  return _mm512_maskz_loadu_ps((1u << Count) - 1u, p);
}
template <int Count>
inline void store_first(float* p, Vector v) {
  _mm512_mask_storeu_ps(p, (1u << Count) - 1u, v);
}
#else
template <int Count>
inline Vector load_first(const float* p) {
  float values[kLanes] = {};
  __builtin_memcpy(values, p, Count * sizeof(float));
  return load(values);
}
template <int Count>
inline void store_first(float* p, Vector v) {
  float values[kLanes];
  store(values, v);
  __builtin_memcpy(p, values, Count * sizeof(float));
}
#endif

// x, as a value that the compiler does not load again for each use: it takes a load for an operand
// that costs nothing, and a core does no more loads than multiply-adds.
inline Vector in_register(Vector x) {
#if defined(RLT_VECTORS_AVX512) || defined(RLT_VECTORS_AVX2)
  __asm__("" : "+v"(x));
#endif
  return x;
}

// x, with 0 for -0
inline Vector without_negative_zero(Vector x) { return add(x, broadcast(0.0f)); }

// max(0, x) as activation_value<relu> defines it: a NaN passes through, -0 becomes 0.
#if defined(RLT_VECTORS_AVX512)
inline Vector relu(Vector x) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NLE_UQ), x);
}
#elif defined(RLT_VECTORS_AVX2)
inline Vector relu(Vector x) {
  return _mm256_and_ps(_mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_NLE_UQ), x);
}
#elif defined(RLT_VECTORS_NEON)
inline Vector relu(Vector x) {
  const Vector zero = vdupq_n_f32(0.0f);
  return vbslq_f32(vcleq_f32(x, zero), zero, x);
}
#elif defined(RLT_VECTORS_WASM)
inline Vector relu(Vector x) { return wasm_v128_andnot(x, wasm_f32x4_le(x, broadcast(0.0f))); }
#else
inline Vector relu(Vector x) { return x <= 0.0f ? 0.0f : x; }
#endif

// gradient where y > 0, else 0: activation_gradient<relu>
#if defined(RLT_VECTORS_AVX512)
inline Vector relu_gradient(Vector y, Vector gradient) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(y, _mm512_setzero_ps(), _CMP_GT_OQ), gradient);
}
#elif defined(RLT_VECTORS_AVX2)
inline Vector relu_gradient(Vector y, Vector gradient) {
  return _mm256_and_ps(_mm256_cmp_ps(y, _mm256_setzero_ps(), _CMP_GT_OQ), gradient);
}
#elif defined(RLT_VECTORS_NEON)
inline Vector relu_gradient(Vector y, Vector gradient) {
  const Vector zero = vdupq_n_f32(0.0f);
  return vbslq_f32(vcgtq_f32(y, zero), gradient, zero);
}
#elif defined(RLT_VECTORS_WASM)
inline Vector relu_gradient(Vector y, Vector gradient) {
  return wasm_v128_and(gradient, wasm_f32x4_gt(y, broadcast(0.0f)));
}
#else
inline Vector relu_gradient(Vector y, Vector gradient) { return y > 0.0f ? gradient : 0.0f; }
#endif

// ---- Where a vector is not zero -----------------------------------------------------------------

// A Mask has 32 bits beside each lane of a vector; nonzero_lanes() has one. Whether -0 counts as
// zero does not matter. bits_of_either() is zero where
// both are.
#if defined(RLT_VECTORS_AVX512)
using Mask = __m512i;
inline Mask lanes_of(std::int32_t bits) { return _mm512_set1_epi32(bits); }
inline void store_lanes(std::uint32_t* p, Mask mask) { _mm512_storeu_si512(p, mask); }
inline Mask twice(Mask mask) { return _mm512_add_epi32(mask, mask); }
inline Vector bits_of_either(Vector a, Vector b) {
  return _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
inline std::uint32_t nonzero_lanes(Vector x) {
  return _mm512_test_epi32_mask(_mm512_castps_si512(x), _mm512_castps_si512(x));
}
inline Mask add_where_nonzero(Mask sum, Mask addend, Vector x) {
  const __mmask16 nonzero = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ);
  return _mm512_mask_add_epi32(sum, nonzero, sum, addend);
}
#elif defined(RLT_VECTORS_AVX2)
using Mask = __m256i;
inline Mask lanes_of(std::int32_t bits) { return _mm256_set1_epi32(bits); }
inline void store_lanes(std::uint32_t* p, Mask mask) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), mask);
}
inline Mask twice(Mask mask) { return _mm256_add_epi32(mask, mask); }
inline Vector bits_of_either(Vector a, Vector b) { return _mm256_or_ps(a, b); }
inline Vector nonzero(Vector x) { return _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_NEQ_UQ); }
inline std::uint32_t nonzero_lanes(Vector x) {
  return static_cast<std::uint32_t>(_mm256_movemask_ps(nonzero(x)));
}
inline Mask add_where_nonzero(Mask sum, Mask addend, Vector x) {
  return _mm256_add_epi32(sum, _mm256_and_si256(_mm256_castps_si256(nonzero(x)), addend));
}
#elif defined(RLT_VECTORS_NEON)
using Mask = uint32x4_t;
inline Mask lanes_of(std::int32_t bits) { return vdupq_n_u32(static_cast<std::uint32_t>(bits)); }
inline void store_lanes(std::uint32_t* p, Mask mask) { vst1q_u32(p, mask); }
inline Mask twice(Mask mask) { return vaddq_u32(mask, mask); }
inline Vector bits_of_either(Vector a, Vector b) {
  return vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(a), vreinterpretq_u32_f32(b)));
}
inline std::uint32_t nonzero_lanes(Vector x) {
  const std::uint32_t lane_bits[4] = {1, 2, 4, 8};
  return vaddvq_u32(vbicq_u32(vld1q_u32(lane_bits), vceqzq_f32(x)));
}
inline Mask add_where_nonzero(Mask sum, Mask addend, Vector x) {
  return vaddq_u32(sum, vbicq_u32(addend, vceqzq_f32(x)));
}
#elif defined(RLT_VECTORS_WASM)
using Mask = v128_t;
inline Mask lanes_of(std::int32_t bits) { return wasm_i32x4_splat(bits); }
inline void store_lanes(std::uint32_t* p, Mask mask) { wasm_v128_store(p, mask); }
inline Mask twice(Mask mask) { return wasm_i32x4_add(mask, mask); }
inline Vector bits_of_either(Vector a, Vector b) { return wasm_v128_or(a, b); }
inline Vector nonzero(Vector x) { return wasm_f32x4_ne(x, broadcast(0.0f)); }
inline std::uint32_t nonzero_lanes(Vector x) { return wasm_i32x4_bitmask(nonzero(x)); }
inline Mask add_where_nonzero(Mask sum, Mask addend, Vector x) {
  return wasm_i32x4_add(sum, wasm_v128_and(nonzero(x), addend));
}
#else
using Mask = std::uint32_t;
inline Mask lanes_of(std::int32_t bits) { return static_cast<Mask>(bits); }
inline void store_lanes(std::uint32_t* p, Mask mask) { *p = mask; }
inline Mask twice(Mask mask) { return mask + mask; }
inline Vector bits_of_either(Vector a, Vector b) { return a != 0.0f ? a : b; }
inline std::uint32_t nonzero_lanes(Vector x) { return x != 0.0f; }
inline Mask add_where_nonzero(Mask sum, Mask addend, Vector x) {
  return x != 0.0f ? sum + addend : sum;
}
#endif

// ---- Rearranging --------------------------------------------------------------------------------

#if defined(RLT_VECTORS_AVX512)

// Transpose the 16 x 16 matrix whose rows are `rows`: 4 x 4 within the groups of four lanes, then
// the groups. (Shuffles within a group cost less than those by an index vector.)
inline void transpose(Vector (&rows)[kLanes]) {
  const auto low_pairs = [](Vector a, Vector b) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  };
  const auto high_pairs = [](Vector a, Vector b) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  };
  // column[i][c]: in group g, column 4 g + c of the rows 4 i to 4 i + 3
  Vector column[4][4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    const Vector low01 = _mm512_unpacklo_ps(rows[4 * i], rows[4 * i + 1]);
    const Vector high01 = _mm512_unpackhi_ps(rows[4 * i], rows[4 * i + 1]);
    const Vector low23 = _mm512_unpacklo_ps(rows[4 * i + 2], rows[4 * i + 3]);
    const Vector high23 = _mm512_unpackhi_ps(rows[4 * i + 2], rows[4 * i + 3]);
    column[i][0] = low_pairs(low01, low23);
    column[i][1] = high_pairs(low01, low23);
    column[i][2] = low_pairs(high01, high23);
    column[i][3] = high_pairs(high01, high23);
  }
  constexpr int kEven = 0x88, kOdd = 0xdd;  // groups 0 and 2, or 1 and 3, of either operand
#pragma GCC unroll 4
  for (int c = 0; c < 4; c++) {
    const Vector even01 = _mm512_shuffle_f32x4(column[0][c], column[1][c], kEven);
    const Vector odd01 = _mm512_shuffle_f32x4(column[0][c], column[1][c], kOdd);
    const Vector even23 = _mm512_shuffle_f32x4(column[2][c], column[3][c], kEven);
    const Vector odd23 = _mm512_shuffle_f32x4(column[2][c], column[3][c], kOdd);
    rows[c] = _mm512_shuffle_f32x4(even01, even23, kEven);
    rows[4 + c] = _mm512_shuffle_f32x4(odd01, odd23, kEven);
    rows[8 + c] = _mm512_shuffle_f32x4(even01, even23, kOdd);
    rows[12 + c] = _mm512_shuffle_f32x4(odd01, odd23, kOdd);
  }
}

#else

// Interleaves the lower (or upper) halves of a and b: a0 b0 a1 b1 ...
template <bool Upper>
inline Vector interleave(Vector a, Vector b) {
#if defined(RLT_VECTORS_AVX2)
  const Vector low = _mm256_unpacklo_ps(a, b), high = _mm256_unpackhi_ps(a, b);
  return _mm256_permute2f128_ps(low, high, Upper ? 0x31 : 0x20);
#elif defined(RLT_VECTORS_NEON)
  return Upper ? vzip2q_f32(a, b) : vzip1q_f32(a, b);
#elif defined(RLT_VECTORS_WASM)
  return Upper ? wasm_i32x4_shuffle(a, b, 2, 6, 3, 7) : wasm_i32x4_shuffle(a, b, 0, 4, 1, 5);
#else
  return Upper ? b : a;
#endif
}

// Transpose the kLanes x kLanes matrix whose rows are `rows`, by repeated perfect shuffles.
inline void transpose(Vector (&rows)[kLanes]) {
#pragma GCC unroll 8
  for (int size = 1; size < kLanes; size *= 2) {
    Vector shuffled[kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < kLanes / 2; i++) {
      shuffled[2 * i] = interleave<false>(rows[i], rows[i + kLanes / 2]);
      shuffled[2 * i + 1] = interleave<true>(rows[i], rows[i + kLanes / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; i++) rows[i] = shuffled[i];
  }
}

#endif

// destination (kLanes, kLanes) = transpose of source (kLanes, kLanes), whose rows are SourceStride
// and DestinationStride apart
template <int SourceStride, int DestinationStride>
inline __attribute__((always_inline)) void transpose_block(const float* source,
                                                           float* destination) {
  Vector block[kLanes];
#if defined(RLT_VECTORS_AVX2)
  // Halves of the rows i and i + 4 meet as they are loaded, and shuffles within halves are left.
#pragma GCC unroll 2
  for (int half = 0; half < 2; half++) {
    Vector rows[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
      const float* row = source + i * SourceStride + 4 * half;
      rows[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row)),
                                     _mm_loadu_ps(row + 4 * SourceStride), 1);
    }
    const Vector low01 = _mm256_unpacklo_ps(rows[0], rows[1]);
    const Vector high01 = _mm256_unpackhi_ps(rows[0], rows[1]);
    const Vector low23 = _mm256_unpacklo_ps(rows[2], rows[3]);
    const Vector high23 = _mm256_unpackhi_ps(rows[2], rows[3]);
    constexpr int kLowPairs = 0x44, kHighPairs = 0xee;
    block[4 * half + 0] = _mm256_shuffle_ps(low01, low23, kLowPairs);
    block[4 * half + 1] = _mm256_shuffle_ps(low01, low23, kHighPairs);
    block[4 * half + 2] = _mm256_shuffle_ps(high01, high23, kLowPairs);
    block[4 * half + 3] = _mm256_shuffle_ps(high01, high23, kHighPairs);
  }
#else
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; i++) block[i] = load(source + i * SourceStride);
  transpose(block);
#endif
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; i++) store(destination + i * DestinationStride, block[i]);
}

// destination (Columns, Rows) = transpose of source (Rows, Columns), whose rows are SourceStride
// and DestinationStride apart
template <int Rows, int Columns, int SourceStride, int DestinationStride>
inline void transpose(const float* source, float* destination) {
  constexpr int kWholeRows = kLanes == 1 ? 0 : Rows / kLanes * kLanes;
  constexpr int kWholeColumns = kLanes == 1 ? 0 : Columns / kLanes * kLanes;
  for (int row = 0; row < kWholeRows; row += kLanes) {
    for (int column = 0; column < kWholeColumns; column += kLanes) {
      transpose_block<SourceStride, DestinationStride>(
          source + row * SourceStride + column, destination + column * DestinationStride + row);
    }
  }
  for (int row = 0; row < Rows; row++) {
    for (int column = row < kWholeRows ? kWholeColumns : 0; column < Columns; column++) {
      destination[column * DestinationStride + row] = source[row * SourceStride + column];
    }
  }
}

}  // namespace rlt::kernels
