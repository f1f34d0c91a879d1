// The description of an environment (describe.h), for an experiment's description and for its
// library.
#pragma once

#include "describe.h"
#include "rltools/core/finite.h"
#include "rltools/rl/environment.h"

namespace rlt::describe {

// The name of the contract that an environment is derived from; null where it states its channels
// itself.
template <class E, class = void>
struct ContractName {
  static constexpr const char* kValue = nullptr;
};
template <class E>
struct ContractName<E, std::void_t<decltype(E::kContractName)>> {
  static constexpr const char* kValue = E::kContractName;
};

// The shapes of its picture, where it has one (rl/picture.h).
template <class E, class = void>
struct Picture {
  static void describe(Json&) {}
};
template <class E>
struct Picture<E, std::void_t<decltype(E::kPicture)>> {
  static void describe(Json& json) {
    for (const Shape& shape : E::kPicture) {
      json.object([&] {
        json.pair("kind", shape.kind);
        json.pair("look", shape.look);
        json.pair("numbers", shape.numbers);
      });
    }
  }
};

// Write its pairs, in an object that the caller has opened; after so many steps an episode is cut
// off.
template <class E>
void describe_environment(Json& json, std::uint32_t episode_steps) {
  json.pair("name", E::kName);
  json.pair("step_interval_us", E::kStepInterval_us);
  json.key("episode_steps");
  episode_steps == kUnlimitedSteps ? json.write(nullptr) : json.write(episode_steps);
  json.pair("contract", ContractName<E>::kValue);
  json.key("solved_return");
  is_finite(E::kSolvedReturn) ? json.write(static_cast<float>(E::kSolvedReturn))
                              : json.write(nullptr);
  describe_channels(json, "observations", E::kObservations, E::kObservationDim);
  describe_channels(json, "actions", E::kActions, E::kActionDim);
  describe_safe_action<E>(json);
  json.list("picture", [&] { Picture<E>::describe(json); });
}

}  // namespace rlt::describe
