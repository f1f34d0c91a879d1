// What the kernels know of the host's core beyond its instructions: the width of its multiply-add
// units, and the choices that follow from it. The compiler's target decides, and RLT_UNIT_BITS
// where it is defined. No bit of a result depends on it.
//
// A vector of 512 bits is one operation of a 512-bit unit, and two of a 256-bit unit. Both kinds of
// core load one vector for each multiply-add that they start, so a product that leaves out terms,
// with a load for each multiply-add, has no load to spare for the factor. Measurements are in
// docs/performance.md ("Two kinds of core").
#pragma once

#include "rltools/kernels/simd/vector.h"

namespace rlt::kernels {

// AMD Zen 5; compilers that do not know its name yet show it by two instruction sets that only this
// core has together. Every other core with vectors of 512 bits counts as one with 256-bit units,
// such as AMD Zen 4, until it is measured.
#if defined(RLT_UNIT_BITS)
constexpr int kUnitBits = RLT_UNIT_BITS;
#elif defined(RLT_VECTORS_AVX512) && \
    (defined(__znver5__) || (defined(__AVX512VP2INTERSECT__) && defined(__AVXVNNI__)))
constexpr int kUnitBits = 512;
#else
constexpr int kUnitBits = kLanes == 1 ? 0 : kLanes == 4 ? 128 : 256;
#endif
static_assert(kUnitBits <= 32 * kLanes, "no vector fills these units");

constexpr bool kWideUnits = kUnitBits == 512;

// Rows that are worked through together where terms with a zero factor are left out
// (nonzero_product.h). Two rows share each load, and lose the terms that are zero in both; a row by
// itself loses more terms, and costs a load for each multiply-add.
constexpr int kRowsSharingTerms = kWideUnits ? 2 : 1;

// A factor for all lanes. A 256-bit core fills them from an integer register, beside the loads (8 %
// of a product); a 512-bit core takes 1.26 times as long for that as from memory.
inline Vector broadcast_factor(const float* factor) {
#if defined(RLT_VECTORS_AVX512)
  if constexpr (!kWideUnits) {
    std::int32_t bits;
    __builtin_memcpy(&bits, factor, sizeof bits);
    __asm__("" : "+r"(bits));
    return _mm512_castsi512_ps(_mm512_set1_epi32(bits));
  }
#endif
  return broadcast(*factor);
}

}  // namespace rlt::kernels
