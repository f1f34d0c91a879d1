// Properties of the host's core beyond its instructions: the width of its multiply-add units,
// whether loads delay them, and the choices that follow. The compiler's target decides, and
// RLT_UNIT_BITS and RLT_LOADS_DELAY where RLT_UNIT_BITS is defined. No bit of a result depends on
// it.
//
// A vector of 512 bits is one operation of a 512-bit unit, and two of a 256-bit unit. Both kinds of
// core load one vector for each multiply-add that they start, so a product that leaves out terms,
// with a load for each multiply-add, has no load to spare for the factor. On a core where loads
// delay the multiply-adds, each costs up to half of one, wherever it goes: tiles are as large as
// the registers allow. Measurements are in docs/experiments.md ("Kinds of core").
#pragma once

#include "rltools/kernels/simd/vector.h"

namespace rlt::kernels {

// 512-bit units have AMD Zen 5, which compilers that do not know its name yet show by two
// instruction sets that only this core has together, and Intel's Xeons from Sapphire Rapids on,
// which have half-precision arithmetic (compilers may take them for another core). Every other core
// with vectors of 512 bits counts as one with 256-bit units, such as AMD Zen 4, until it is
// measured.
#if defined(RLT_UNIT_BITS)
#if !defined(RLT_LOADS_DELAY)
#define RLT_LOADS_DELAY 0
#endif
constexpr int kUnitBits = RLT_UNIT_BITS;
constexpr bool kLoadsDelay = RLT_LOADS_DELAY && kLanes == 16;
#elif defined(RLT_VECTORS_AVX512) && \
    (defined(__znver5__) || (defined(__AVX512VP2INTERSECT__) && defined(__AVXVNNI__)))
constexpr int kUnitBits = 512;
constexpr bool kLoadsDelay = false;
#elif defined(RLT_VECTORS_AVX512) && defined(__AVX512FP16__)
constexpr int kUnitBits = 512;
constexpr bool kLoadsDelay = true;
#else
constexpr int kUnitBits = kLanes == 1 ? 0 : kLanes == 4 ? 128 : 256;
constexpr bool kLoadsDelay = false;
#endif
static_assert(kUnitBits <= 32 * kLanes, "no vector fills these units");

constexpr bool kWideUnits = kUnitBits == 512;

// The kind of core that the kernels are chosen for, as measurements name it.
constexpr const char* kKindOfCore = kLoadsDelay        ? "512-bit units that loads delay"
                                    : kUnitBits == 512 ? "512-bit units"
                                    : kUnitBits == 256 ? "256-bit units"
                                    : kUnitBits == 128 ? "128-bit units"
                                                       : "no vectors";

// Rows of a tile where all terms count: with six there are 24 sums, 4 operands and a factor in 32
// registers, which pays where there are terms enough.
constexpr int rows_of_tile(int terms) { return kLoadsDelay && terms >= 16 ? 6 : kTileRows; }

// Rows that are worked through together where terms with a zero factor are left out
// (nonzero_product.h). Rows that share each load lose the terms that are zero in all of them; a row
// by itself loses more terms, and costs a load for each multiply-add.
constexpr int kRowsSharingTerms = kLoadsDelay ? 4 : kWideUnits ? 2 : 1;

// Vectors of sums that each row has under way where terms are left out: rows that are worked
// through together have four each. With AVX2 and NEON one row by itself has 64 columns, so eight or
// sixteen, and loads its factor once for as many multiply-adds and not for four.
constexpr int kVectorsOfPairedRow = 4;
#if defined(RLT_VECTORS_AVX2) || defined(RLT_VECTORS_NEON)
constexpr int kVectorsOfNonzeroRow = 64 / kLanes;
#else
constexpr int kVectorsOfNonzeroRow = kVectorsOfPairedRow;
#endif

// Vectors of sums of a tile with so many rows: with AVX2 a tile of one or two rows, those that are
// left over, is wider, to have as many sums under way as the multiply-adds' latency needs.
constexpr int vectors_of_tile(int rows) {
  return kLanes == 8 && rows <= 2 ? 8 / rows : kTileVectors;
}

// True if a small number of sums is kept in a whole vector: on Intel's cores a multiply-add of 128
// bits beside vectors of 512 takes twice its time.
constexpr bool kNarrowInWholeVector = kLoadsDelay;

// relu() of a sum, which is no signaling NaN. On Intel's cores a comparison and a masked copy take
// two multiply-adds' turns, and replacing by class of number one.
inline Vector relu_of_sum(Vector sum) {
#if defined(RLT_VECTORS_AVX512)
  if constexpr (kLoadsDelay) {
    // From the lowest digit, for a quiet NaN, signaling NaN, zero, one, -infinity, infinity,
    // negative and positive: 1 is the number itself, 8 is +0.
    constexpr int kReplacements = 0x18181811;
    return _mm512_fixupimm_ps(sum, sum, _mm512_set1_epi32(kReplacements), 0);
  }
#endif
  return relu(sum);
}

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
