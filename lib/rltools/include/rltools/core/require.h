// Contracts: what a type has to have, each requirement said once with the sentence that the
// compiler shows where it does not hold.
//
//   template <class E>
//   struct PlanetContract {
//     template <bool Asserts>
//     static constexpr bool check() {
//       bool kept = true;
//       RLT_REQUIRE(E::kMoons >= 0, "kMoons is negative");
//       return kept;
//     }
//   };
//
// kIsKept<PlanetContract<E>> is true where all of it holds; what relies on the contract is compiled
// only then, so that the sentence is the only error. To compile check<true>() shows the sentences.
// A contract includes another one by
//   kept = kept && OtherContract<E>::template check<Asserts>();
#pragma once

// GCC then shows the requirement, and leaves out how this macro is made.
#pragma GCC system_header

#define RLT_REQUIRE(condition, sentence)                     \
  if constexpr (Asserts) static_assert(condition, sentence); \
  kept = kept && (condition)

namespace rlt {

template <class Contract>
constexpr bool kIsKept = Contract::template check<false>();

}  // namespace rlt
