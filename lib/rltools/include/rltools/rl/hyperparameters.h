// Hyperparameters: scalars that an algorithm lists once. The struct, its table of names, bounds and
// units, the protocol's parameters, the command line's `--set` and the documentation all come from
// that list.
#pragma once

#include <cstdint>

#include "rltools/core/tensor.h"

namespace rlt {

// A parameter of MAVLink has at most this many characters: those with which a name begins.
constexpr int kParameterIdBytes = 16;

// Return whether two names, or a name and an id, are one to the protocol; an id ends with a zero
// unless it has all 16 characters.
constexpr bool share_an_id(const char* a, const char* b) {
  int i = 0;
  while (i < kParameterIdBytes && a[i] == b[i] && a[i] != '\0') i++;
  return i == kParameterIdBytes || a[i] == b[i];
}

// One hyperparameter. `type` is f32 or u32.
struct ParameterInfo {
  const char* name;
  DataType type;
  double default_value, minimum, maximum;
  const char* unit;
  const char* description;
};

namespace detail {

template <class T>
inline std::uint32_t to_bits(T value) {
  static_assert(sizeof(T) == 4, "hyperparameters are float or uint32_t");
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, 4);
  return bits;
}

// Set `value` from `bits` where it lies within the bounds; a NaN never does.
template <class T>
inline bool from_bits(T& value, std::uint32_t bits, const ParameterInfo& info) {
  T candidate;
  __builtin_memcpy(&candidate, &bits, 4);
  const double number = static_cast<double>(candidate);
  if (!(number >= info.minimum && number <= info.maximum)) return false;
  value = candidate;
  return true;
}

}  // namespace detail

// Every algorithm's list begins with these.   X(type, name, default, minimum, maximum, unit,
// description)
#define RLT_RUN_HYPERPARAMETERS(X)                                                              \
  X(std::uint32_t, seed, 0, 0, 4294967295.0, "",                                                \
    "Seed of all random numbers; the same seed gives the same bits on every board.")            \
  X(std::uint32_t, steps, 10000, 1, 4294967295.0, "steps", "Environment steps in all.")         \
  X(std::uint32_t, eval_freq, 1000, 1, 4294967295.0, "steps", "Steps between two evaluations.") \
  X(std::uint32_t, n_eval_episodes, 10, 1, 1000, "episodes",                                    \
    "Deterministic episodes of an evaluation.")                                                 \
  X(std::uint32_t, report_every, 100, 1, 4294967295.0, "steps",                                 \
    "Steps between two progress messages; does not influence training.")

// ... and ends with Adam's.
#define RLT_ADAM_HYPERPARAMETERS(X)                                                        \
  X(float, adam_beta1, 0.9, 0, 0.9999999, "", "Adam's decay rate of the first moment.")    \
  X(float, adam_beta2, 0.999, 0, 0.9999999, "", "Adam's decay rate of the second moment.") \
  X(float, adam_epsilon, 1e-8, 1e-30, 1, "", "Adam's term against division by zero.")

#define RLT_HYPERPARAMETER_FIELD(Type, Name, Default, Minimum, Maximum, Unit, Description) \
  Type Name = static_cast<Type>(Default);
#define RLT_HYPERPARAMETER_INFO(Type, Name, Default, Minimum, Maximum, Unit, Description)  \
  ::rlt::ParameterInfo{#Name,      ::rlt::data_type_of(static_cast<const Type*>(nullptr)), \
                       Default,    Minimum,                                                \
                       Maximum,    Unit,                                                   \
                       Description},
#define RLT_HYPERPARAMETER_GET(Type, Name, Default, Minimum, Maximum, Unit, Description) \
  if (index-- == 0) return ::rlt::detail::to_bits(Name);
#define RLT_HYPERPARAMETER_SET(Type, Name, Default, Minimum, Maximum, Unit, Description) \
  if (index-- == 0) return ::rlt::detail::from_bits(Name, bits, information);

// Defines `struct Struct` with one member per entry of `List`, and access by index for the
// protocol.
#define RLT_DEFINE_HYPERPARAMETERS(Struct, List)                                            \
  struct Struct {                                                                           \
    List(RLT_HYPERPARAMETER_FIELD) static constexpr ::rlt::ParameterInfo kInfo[] = {        \
      List(RLT_HYPERPARAMETER_INFO)                                                         \
    };                                                                                      \
    static_assert(!::rlt::detail::repeats_an_id(kInfo),                                     \
                  "two of " #Struct " begin with the same 16 characters, MAVLink's limit"); \
    static constexpr int kCount = static_cast<int>(sizeof(kInfo) / sizeof(kInfo[0]));       \
    static const ::rlt::ParameterInfo& info(int index) { return kInfo[index]; }             \
    /* The value's four bytes; index in [0, kCount). */                                     \
    std::uint32_t get_bits(int index) const { List(RLT_HYPERPARAMETER_GET) return 0; }      \
    /* False, and nothing changed, where the value is out of bounds or not a number. */     \
    bool set_bits(int index, std::uint32_t bits) {                                          \
      if (index < 0 || index >= kCount) return false;                                       \
      const ::rlt::ParameterInfo& information = info(index);                                \
      List(RLT_HYPERPARAMETER_SET) return false;                                            \
    }                                                                                       \
  };

namespace detail {

// Return whether two of a list, or one of each of two lists, have one id.
template <int N>
constexpr bool repeats_an_id(const ParameterInfo (&list)[N]) {
  for (int i = 0; i < N; i++) {
    for (int j = 0; j < i; j++) {
      if (share_an_id(list[i].name, list[j].name)) return true;
    }
  }
  return false;
}

template <class First, class Second>
constexpr bool share_ids() {
  for (const ParameterInfo& a : First::kInfo) {
    for (const ParameterInfo& b : Second::kInfo) {
      if (share_an_id(a.name, b.name)) return true;
    }
  }
  return false;
}

// The lists of both, one behind the other.
template <class First, class Second>
struct JoinedInfo {
  static constexpr int kCount = First::kCount + Second::kCount;
  struct List {
    ParameterInfo of[kCount];
  };
  static constexpr List make_list() {
    List list{};
    for (int i = 0; i < First::kCount; i++) list.of[i] = First::kInfo[i];
    for (int i = 0; i < Second::kCount; i++) list.of[First::kCount + i] = Second::kInfo[i];
    return list;
  }
  static constexpr List kList = make_list();
};

}  // namespace detail

// An algorithm's hyperparameters and, behind them, the settings of an environment: one list. (Or
// the settings of an environment and, behind them, those of one that adds something to it.)
template <class Algorithm, class Settings>
struct JoinedHyperparameters : Algorithm {
  static_assert(!detail::share_ids<Algorithm, Settings>(),
                "a setting of the environment begins with the same 16 characters as one of the "
                "algorithm's hyperparameters");
  Settings environment;

  static constexpr int kCount = Algorithm::kCount + Settings::kCount;
  static constexpr const ParameterInfo (&kInfo)[kCount] =
      detail::JoinedInfo<Algorithm, Settings>::kList.of;
  static const ParameterInfo& info(int index) {
    return index < Algorithm::kCount ? Algorithm::info(index)
                                     : Settings::info(index - Algorithm::kCount);
  }
  std::uint32_t get_bits(int index) const {
    return index < Algorithm::kCount ? Algorithm::get_bits(index)
                                     : environment.get_bits(index - Algorithm::kCount);
  }
  bool set_bits(int index, std::uint32_t bits) {
    return index < Algorithm::kCount ? Algorithm::set_bits(index, bits)
                                     : environment.set_bits(index - Algorithm::kCount, bits);
  }
};

}  // namespace rlt
