// The steps of term_list.h in a Cortex-M's own instructions (Thumb-2). Each function stands for a
// plain loop there, which says what it computes, and gives the same bits.
#pragma once

#if defined(__thumb2__)

#include <cstdint>

namespace rlt::kernels::thumb {

inline int minus_one_where_nonzero(int count, float x) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  __asm__(
      "cmp %[zero], %[bits], lsl #1\n\t"  // borrows where a bit but the sign is set
      "sbc %[count], %[count], #0"
      : [count] "+r"(count)
      : [zero] "r"(0), [bits] "r"(bits)
      : "cc");
  return count;
}

inline __attribute__((always_inline)) int add_term(const float** last_row, float* last_factor,
                                                   int minus_count, const float* row,
                                                   float factor) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &factor, sizeof bits);
  __asm__(
      "str %[row], [%[last_row], %[count], lsl #2]\n\t"
      "str %[bits], [%[last_factor], %[count], lsl #2]\n\t"
      "cmp %[zero], %[bits], lsl #1\n\t"
      "sbc %[count], %[count], #0"
      : [count] "+r"(minus_count)
      : [row] "r"(row), [bits] "r"(bits), [last_row] "r"(last_row), [last_factor] "r"(last_factor),
        [zero] "r"(0)
      : "cc", "memory");
  return minus_count;
}

// Four floats of a row become a column of `to`, whose rows are RowBytes apart; returns what follows
// the four.
constexpr int kLargestOffset = 4095;  // of a store
template <int RowBytes>
inline const float* transpose_four(const float* row, float* to) {
  static_assert(3 * RowBytes <= kLargestOffset);
  __asm__ volatile(
      "ldmia %[row]!, {r4, r5, r6, r8}\n\t"
      "str r4, [%[to]]\n\t"
      "str r5, [%[to], %[second]]\n\t"
      "str r6, [%[to], %[third]]\n\t"
      "str r8, [%[to], %[fourth]]"
      : [row] "+r"(row)
      : [to] "r"(to), [second] "i"(RowBytes), [third] "i"(2 * RowBytes), [fourth] "i"(3 * RowBytes)
      : "r4", "r5", "r6", "r8", "memory");
  return row;
}

#if defined(__ARM_FP) && defined(__OPTIMIZE__)  // or registers run out
#define RLT_THUMB_ACCUMULATES_TERMS

// clang-format off
// Eight columns of a term, and all 16.
#define RLT_HALF_TERM(row, factor, c0, c1, c2, c3, c4, c5, c6, c7) \
  "vldmia " row "!, {d0-d3}\n\t"                                   \
  "vfma.f32 " c0 ", " factor ", s0\n\t"                            \
  "vfma.f32 " c1 ", " factor ", s1\n\t"                            \
  "vfma.f32 " c2 ", " factor ", s2\n\t"                            \
  "vfma.f32 " c3 ", " factor ", s3\n\t"                            \
  "vfma.f32 " c4 ", " factor ", s4\n\t"                            \
  "vfma.f32 " c5 ", " factor ", s5\n\t"                            \
  "vfma.f32 " c6 ", " factor ", s6\n\t"                            \
  "vfma.f32 " c7 ", " factor ", s7\n\t"
#define RLT_TERM(row, factor)                                                        \
  RLT_HALF_TERM(row, factor, "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23") \
  RLT_HALF_TERM(row, factor, "s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31")
// clang-format on

inline __attribute__((noinline)) void accumulate_terms(const float* start, int step, float* sums,
                                                       const float** rows, const float* factors,
                                                       int count, int blocks) {
  do {
    const float** next_rows = rows;
    const float* next_factors = factors;
    int left = count;
    __asm__ volatile(
        "vldmia %[start], {d8-d15}\n\t"
        "subs %[left], #4\n\t"
        "blt 2f\n"
        "1:\n\t"
        "ldmia %[rows], {r4, r5, r6, r8}\n\t"
        "vldmia %[factors]!, {d4-d5}\n\t"  // clang-format off
        RLT_TERM("r4", "s8")
        RLT_TERM("r5", "s9")
        RLT_TERM("r6", "s10")
        RLT_TERM("r8", "s11")
        "stmia %[rows]!, {r4, r5, r6, r8}\n\t"
        "subs %[left], #4\n\t"
        "bge 1b\n"
        "2:\n\t"
        "adds %[left], #4\n\t"
        "beq 4f\n"
        "3:\n\t"
        "ldr r4, [%[rows]]\n\t"
        "vldmia %[factors]!, {s8}\n\t"
        RLT_TERM("r4", "s8")
        "str r4, [%[rows]], #4\n\t"
        "subs %[left], #1\n\t"
        "bne 3b\n"
        "4:\n\t"  // clang-format on
        "vstmia %[sums]!, {d8-d15}"
        : [sums] "+r"(sums), [rows] "+r"(next_rows), [factors] "+r"(next_factors), [left] "+r"(left)
        : [start] "r"(start)
        : "r4", "r5", "r6", "r8", "d0", "d1", "d2", "d3", "d4", "d5", "d8", "d9", "d10", "d11",
          "d12", "d13", "d14", "d15", "cc", "memory");
    start += step;
  } while (--blocks > 0);
}

#undef RLT_TERM
#undef RLT_HALF_TERM

// values[0 .. 7] += 0; returns what follows.
inline float* add_zero_to_eight(float* values) {
  __asm__ volatile(
      "vldmia %[values], {d0-d3}\n\t"
      "vadd.f32 s0, s0, %[zero]\n\t"
      "vadd.f32 s1, s1, %[zero]\n\t"
      "vadd.f32 s2, s2, %[zero]\n\t"
      "vadd.f32 s3, s3, %[zero]\n\t"
      "vadd.f32 s4, s4, %[zero]\n\t"
      "vadd.f32 s5, s5, %[zero]\n\t"
      "vadd.f32 s6, s6, %[zero]\n\t"
      "vadd.f32 s7, s7, %[zero]\n\t"
      "vstmia %[values]!, {d0-d3}"
      : [values] "+r"(values)
      : [zero] "t"(0.0f)
      : "d0", "d1", "d2", "d3", "memory");
  return values;
}

#endif

}  // namespace rlt::kernels::thumb

#endif
