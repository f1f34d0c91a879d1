// What statements of a translated GPU program (ptx.py) call. Registers hold bits: u32 of a float.
#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using f32 = float;
using f64 = double;

using Function = void (*)(u8**);
struct Entry {
  const char* name;
  Function function;
  int parameter_bytes[8];
};

#define SHARED __attribute__((section("ptx_shared")))

// ---- Threads ------------------------------------------------------------------------------------

constexpr int kMaxThreads = 1024;
constexpr std::size_t kStackBytes = 1 << 18;

struct Thread {
  ucontext_t start;
  jmp_buf barrier;  // at which it waits, once it has begun
  bool has_begun;
  u32 tid, block;
  bool is_done;
  u64 counts[kBlockCount];
};

static Thread* self;
static jmp_buf scheduler;
static u8 stacks[kMaxThreads][kStackBytes] __attribute__((aligned(4096)));
alignas(64) static u8 dynamic_shared[232448];

#if defined(PTX_COUNTS)
#define COUNT(index) self->counts[index]++;
#else
#define COUNT(index)
#endif

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "thread %u of block %u: %s\n", self->tid, self->block, what);
  std::abort();
}
inline void trap() { fail("trap"); }

inline bool is_local(u64 address) {
  return address - reinterpret_cast<u64>(stacks[self->tid]) < kStackBytes;
}
// No thread has access to another one's local memory.
inline void check(u64 address) {
  const bool is_of_any = address - reinterpret_cast<u64>(stacks) < sizeof stacks;
  if (is_of_any && !is_local(address)) fail("local memory of another thread");
  if (address < 4096) fail("a null pointer");
}
inline void check_alignment(u64 address, int bytes) {
  if (address % static_cast<u64>(bytes) != 0) fail("an unaligned vector");
}
// Jumps, as swapcontext() calls the system each time. They go from stack to stack, which
// _FORTIFY_SOURCE does not let them.
[[gnu::noinline]] static void barrier() {
  if (_setjmp(self->barrier) == 0) _longjmp(scheduler, 1);
}

// ---- Instructions -------------------------------------------------------------------------------

template <class T>
using Bits = std::conditional_t<
    sizeof(T) == 1, u8,
    std::conditional_t<sizeof(T) == 2, u16, std::conditional_t<sizeof(T) == 4, u32, u64>>>;
template <class T>
inline T of(Bits<T> bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
inline Bits<T> bits(T value) {
  Bits<T> result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}
template <class T>
inline T load(u64 address) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}
template <class T>
inline void store(u64 address, T value) {
  std::memcpy(reinterpret_cast<void*>(address), &value, sizeof value);
}

#define UNARY(Name, Value)                 \
  template <class T>                       \
  inline Bits<T> Name(Bits<T> x) {         \
    [[maybe_unused]] const T a = of<T>(x); \
    return bits<T>(static_cast<T>(Value)); \
  }
#define BINARY(Name, Value)                              \
  template <class T>                                     \
  inline Bits<T> Name(Bits<T> x, Bits<T> y) {            \
    [[maybe_unused]] const T a = of<T>(x), b = of<T>(y); \
    return bits<T>(static_cast<T>(Value));               \
  }
UNARY(mov, a)
UNARY(neg, -a)
UNARY(abs, a < T(0) ? -a : std::is_floating_point_v<T> ? std::fabs(a) : a)
UNARY(sqrt, std::sqrt(a))
UNARY(rcp, T(1) / a)
BINARY(add, std::is_integral_v<T> ? of<T>(static_cast<Bits<T>>(x + y)) : a + b)
BINARY(sub, std::is_integral_v<T> ? of<T>(static_cast<Bits<T>>(x - y)) : a - b)
BINARY(mul, a* b)
BINARY(mul_lo, of<T>(static_cast<Bits<T>>(u64{x} * y)))
BINARY(div, a / b)
BINARY(rem, of<T>(static_cast<Bits<T>>(a % b)))
template <class T>
inline Bits<T> smaller(Bits<T> x, Bits<T> y, bool is_max) {
  const T a = of<T>(x), b = of<T>(y);
  if (a != a) return b != b ? bits<T>(static_cast<T>(NAN)) : y;
  if (b != b) return x;
  if (a == b) return is_max == static_cast<bool>(x >> (8 * sizeof(T) - 1)) ? y : x;
  return (a < b) != is_max ? x : y;
}
template <class T>
inline Bits<T> min(Bits<T> x, Bits<T> y) {
  return smaller<T>(x, y, false);
}
template <class T>
inline Bits<T> max(Bits<T> x, Bits<T> y) {
  return smaller<T>(x, y, true);
}

template <class T>
inline Bits<T> fma(Bits<T> x, Bits<T> y, Bits<T> z) {
  return bits<T>(std::fma(of<T>(x), of<T>(y), of<T>(z)));
}
template <class T>
inline Bits<T> mad_lo(Bits<T> x, Bits<T> y, Bits<T> z) {
  return static_cast<Bits<T>>(u64{x} * y + z);
}
template <class T>
inline auto mul_wide(Bits<T> x, Bits<T> y) {
  if constexpr (sizeof(T) == 2) {
    return static_cast<u32>(i32{of<T>(x)} * i32{of<T>(y)});
  } else {
    return static_cast<u64>(static_cast<i64>(of<T>(x)) * static_cast<i64>(of<T>(y)));
  }
}
template <class T>
inline u64 mad_wide(Bits<T> x, Bits<T> y, u64 z) {
  return mul_wide<T>(x, y) + z;
}
template <class T>
inline Bits<T> mul_hi(Bits<T> x, Bits<T> y) {
  using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  return static_cast<Bits<T>>(static_cast<Wide>(of<T>(x)) * of<T>(y) >> (8 * sizeof(T)));
}
#define LOGIC(Name, Value)                                                \
  template <class T>                                                      \
  inline Bits<T> Name##_bits(Bits<T> x, [[maybe_unused]] Bits<T> y = 0) { \
    return static_cast<Bits<T>>(Value);                                   \
  }
LOGIC(and, x& y)
LOGIC(or, x | y)
LOGIC(xor, x ^ y)
LOGIC(not, ~x)
inline bool and_pred(bool x, bool y) { return x && y; }
inline bool or_pred(bool x, bool y) { return x || y; }
inline bool xor_pred(bool x, bool y) { return x != y; }
inline bool not_pred(bool x) { return !x; }
inline bool mov_pred(bool x) { return x; }
template <class T>
inline Bits<T> shl(Bits<T> x, u32 by) {
  return by >= 8 * sizeof(T) ? 0 : static_cast<Bits<T>>(x << by);
}
template <class T>
inline Bits<T> shr(Bits<T> x, u32 by) {
  constexpr u32 kWidth = 8 * sizeof(T);
  const T value = of<T>(x);
  return static_cast<Bits<T>>(by >= kWidth ? (value < 0 ? -1 : 0) : value >> by);
}
template <class T>
inline u32 shf_l_wrap(u32 low, u32 high, u32 by) {
  by &= 31u;
  return by == 0 ? high : high << by | low >> (32 - by);
}
template <class T>
inline u32 shf_r_wrap(u32 low, u32 high, u32 by) {
  by &= 31u;
  return by == 0 ? low : low >> by | high << (32 - by);
}
template <class T>
inline u32 prmt(u32 a, u32 b, u32 selector) {
  const u64 bytes = static_cast<u64>(b) << 32 | a;
  u32 result = 0;
  for (int i = 0; i < 4; i++) {
    const u32 choice = selector >> (4 * i) & 15u;
    u32 byte = static_cast<u32>(bytes >> (8 * (choice & 7u))) & 255u;
    if (choice & 8u) byte = byte & 128u ? 255u : 0u;
    result |= byte << (8 * i);
  }
  return result;
}
template <class T>
inline Bits<T> selp(Bits<T> x, Bits<T> y, bool choice) {
  return choice ? x : y;
}
template <class T>
inline Bits<T> bfe(Bits<T> x, u32 position, u32 count) {
  static_assert(!std::is_signed_v<T>, "a signed field extends its sign");
  position &= 0xff;
  count &= 0xff;
  constexpr u32 kBits = 8 * sizeof(T);
  const Bits<T> moved = position < kBits ? x >> position : 0;
  return count < kBits ? moved & ((Bits<T>(1) << count) - 1) : moved;
}
template <class T>
inline u32 clz(Bits<T> x) {
  return x == 0           ? 8 * sizeof(T)
         : sizeof(T) == 8 ? __builtin_clzll(x)
                          : __builtin_clz(static_cast<u32>(x));
}
template <class T>
inline u32 popc(Bits<T> x) {
  return static_cast<u32>(__builtin_popcountll(x));
}

#define COMPARE(Name, Relation)                         \
  template <class T>                                    \
  inline bool compare_##Name(Bits<T> x, Bits<T> y) {    \
    const T a = of<T>(x), b = of<T>(y);                 \
    return a == a && b == b && a Relation b;            \
  }                                                     \
  template <class T>                                    \
  inline bool compare_##Name##u(Bits<T> x, Bits<T> y) { \
    const T a = of<T>(x), b = of<T>(y);                 \
    return a != a || b != b || a Relation b;            \
  }
COMPARE(eq, ==)
COMPARE(ne, !=)
COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(gt, >)
COMPARE(ge, >=)
template <class T>
inline bool compare_num(Bits<T> x, Bits<T> y) {
  return !(of<T>(x) != of<T>(x) || of<T>(y) != of<T>(y));
}
template <class T>
inline bool compare_nan(Bits<T> x, Bits<T> y) {
  return !compare_num<T>(x, y);
}

template <class To, class From>
inline Bits<To> convert(Bits<From> x) {
  return bits<To>(static_cast<To>(of<From>(x)));
}
template <class To, class From>
inline Bits<To> convert_rmi(Bits<From> x) {
  return bits<To>(static_cast<To>(std::floor(of<From>(x))));
}
template <class To, class From>
inline Bits<To> convert_rpi(Bits<From> x) {
  return bits<To>(static_cast<To>(std::ceil(of<From>(x))));
}
template <class To, class From>
inline Bits<To> convert_rni(Bits<From> x) {
  return bits<To>(static_cast<To>(std::nearbyint(of<From>(x))));
}
// Truncation; beyond the range its nearest end, and 0 of NaN.
template <class To, class From>
inline Bits<To> convert_rzi(Bits<From> x) {
  const From value = std::trunc(of<From>(x));
  if constexpr (std::is_integral_v<To>) {
    constexpr bool kIsSigned = std::is_signed_v<To>;
    constexpr int kBits = 8 * sizeof(To) - (kIsSigned ? 1 : 0);
    const From end = std::ldexp(From(1), kBits);
    if (value != value) return 0;
    if (value >= end)
      return kIsSigned ? (Bits<To>(1) << kBits) - 1 : static_cast<Bits<To>>(~Bits<To>(0));
    if (value < (kIsSigned ? -end : From(0))) return kIsSigned ? Bits<To>(1) << kBits : 0;
  }
  return bits<To>(static_cast<To>(value));
}
