// A policy that acts: what it needs of memory, what becomes of its image, and the action where
// there is no finite one.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "policy_networks.h"
#include "rltools/devices/host.h"
#include "rltools/policy/runtime.h"

using namespace policy_networks;

namespace {

using Place = PolicyRunner<kScratchFloats, 0, kImageBytes>;

struct AssumedContract : Contract {
  static constexpr std::uint32_t kAssumed = kSafeActionAssumed;
};
struct ContractWithSafeAction : Contract {
  static constexpr float kSafeAction[kActionDim] = {0.0f, -0.125f};
};

Bytes default_image(std::uint32_t seed = 7) {
  static Default network;
  initialize_kaiming(Host{}, network, seed, 0);
  return image_of_network(Host{}, network);
}

// The contract with a first observation of at most 1.
PolicyContract low_contract() {
  static Channel observations[Contract::kObservationDim];
  for (int i = 0; i < 5; i++) observations[i] = Contract::kObservations[i];
  observations[0].maximum = 1.0f;
  PolicyContract contract = policy_contract<Contract>();
  contract.observations = observations;
  return contract;
}

// Finite weights, and outputs that are finite while the first observation is within its range.
Bytes overflowing_image() {
  using N = Network<Activation::relu, Activation::identity>;
  static N network;
  for (float& value : network.values) value = 0.0f;
  network.weights(0)[0] = 3e38f;
  network.weights(1)[0] = network.weights(2)[0] = 1.0f;
  network.weights(3)[0] = 1.0f, network.weights(3)[1] = -1.0f;
  return image_of_network(Host{}, network, low_contract());
}

}  // namespace

TEST_CASE("an image says what nobody stated of its contract, and is the same besides") {
  static Default network;
  initialize_kaiming(Host{}, network, 7, 0);
  Bytes image = image_of_network(Host{}, network, policy_contract<AssumedContract>());
  PolicyView policy;
  REQUIRE(parse_policy(image.data(), image.size(), policy).accepted());
  CHECK(policy.header->flags == kSafeActionAssumed);
  CHECK(check_contract(policy, policy_contract<Contract>()).accepted());
  auto& header = *reinterpret_cast<PolicyImageHeader*>(image.data());
  header.flags = 0;
  header.crc32 = policy_image_crc32(image.data(), image.size());
  CHECK(image == default_image());
  header.flags = kStepIntervalAssumed | kSafeActionAssumed;
  header.crc32 = policy_image_crc32(image.data(), image.size());
  CHECK(parse_policy(image.data(), image.size(), policy).accepted());
}

TEST_CASE("scratch memory has room for the widest of observation and layers, twice") {
  // A guard behind it: what is written beyond would be seen.
  const auto check = [](const Bytes& image, std::size_t widest) {
    PolicyView policy;
    REQUIRE(parse_policy(image.data(), image.size(), policy).accepted());
    CHECK(policy.widest == widest);
    REQUIRE(scratch_floats_to_run(policy) == 2 * widest);
    constexpr float kGuard = 12345.0f;
    std::vector<float> scratch(2 * widest + 64, kGuard);
    std::vector<float> output(policy.header->action_dim);
    policy_forward(Generic{}, policy, policy.examples, nullptr, output.data(), scratch.data());
    for (std::size_t i = 2 * widest; i < scratch.size(); i++) REQUIRE(scratch[i] == kGuard);
  };
  check(default_image(), 24);
  // The observation is the widest.
  static Mlp<float, Dimensions<Contract::kObservationDim, 3, Contract::kActionDim>,
             Activation::relu, Activation::tanh>
      narrow;
  initialize_kaiming(Host{}, narrow, 1, 0);
  const Bytes image = image_of_network(Host{}, narrow);
  check(image, Contract::kObservationDim);
  static PolicyRunner<2 * 5 + 2 * 2, 0, kImageBytes> enough(policy_contract<Contract>());
  static PolicyRunner<2 * 5 + 2 * 2 - 1, 0, kImageBytes> too_small(policy_contract<Contract>());
  CHECK(enough.accept(Generic{}, image.data(), image.size()).accepted());
  CHECK(too_small.accept(Generic{}, image.data(), image.size()).reason == PolicyReason::too_large);
}

TEST_CASE("what becomes of the bytes that were sent does not change an accepted policy") {
  Bytes image = default_image();
  const auto place = std::make_unique<Place>(policy_contract<Contract>());
  REQUIRE(place->accept(Host{}, image.data(), image.size()).accepted());
  float before[2], after[2];
  REQUIRE(place->act(Host{}, kGood, before) == ActionSource::from_policy);
  std::fill(image.begin(), image.end(), std::uint8_t{0xff});
  CHECK(place->act(Host{}, kGood, after) == ActionSource::from_policy);
  CHECK(std::memcmp(before, after, sizeof(before)) == 0);
  static_assert(!std::is_copy_constructible_v<Place> && !std::is_copy_assignable_v<Place>);
  static_assert(std::is_same_v<decltype(place->view()), const PolicyView*>);
}

TEST_CASE("an image may lie anywhere, as it is copied") {
  const Bytes image = default_image();
  Bytes shifted(image.size() + 1);
  std::memcpy(shifted.data() + 1, image.data(), image.size());
  const auto place = std::make_unique<Place>(policy_contract<Contract>());
  CHECK(place->accept(Host{}, shifted.data() + 1, image.size()).accepted());
}

TEST_CASE("a policy that was there is given up, whether the next one is accepted or not") {
  const Bytes first = default_image(7), second = default_image(8);
  const auto place = std::make_unique<Place>(policy_contract<Contract>());
  float action[2][2];
  REQUIRE(place->accept(Host{}, first.data(), first.size()).accepted());
  place->act(Host{}, kGood, action[0]);
  REQUIRE(place->accept(Host{}, second.data(), second.size()).accepted());
  CHECK(place->act(Host{}, kGood, action[1]) == ActionSource::from_policy);
  CHECK(action[0][0] != action[1][0]);
  Bytes damaged = first;
  damaged[damaged.size() / 2] ^= 1;
  CHECK(place->accept(Host{}, damaged.data(), damaged.size()).reason == PolicyReason::wrong_crc);
  CHECK(place->view() == nullptr);
  CHECK(place->act(Host{}, kGood, action[1]) == ActionSource::no_policy);
  REQUIRE(place->accept(Host{}, first.data(), first.size()).accepted());
  Bytes full(kImageBytes);  // it fits, and is none
  CHECK(place->accept(Host{}, full.data(), full.size()).reason == PolicyReason::bad_magic);
  const Bytes too_long(kImageBytes + 1);
  CHECK(place->accept(Host{}, too_long.data(), too_long.size()).reason == PolicyReason::too_large);
  CHECK(place->view() == nullptr);
}

TEST_CASE("where there is no policy the action is safe: the middle, or what the contract states") {
  Place place(policy_contract<Contract>());
  float action[2] = {99.0f, 99.0f};
  CHECK(place.act(Host{}, kGood, action) == ActionSource::no_policy);
  CHECK(action[0] == 0.5f);
  CHECK(action[1] == 0.25f);
  Place stated(policy_contract<ContractWithSafeAction>());
  CHECK(stated.act(Host{}, kGood, action) == ActionSource::no_policy);
  CHECK(action[0] == 0.0f);
  CHECK(action[1] == -0.125f);
}

TEST_CASE("an observation that is not finite is a fault, and the whole action is the safe one") {
  const Bytes image = default_image();
  const auto place = std::make_unique<Place>(policy_contract<ContractWithSafeAction>());
  REQUIRE(place->accept(Host{}, image.data(), image.size()).accepted());
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity}) {
    for (int i = 0; i < Contract::kObservationDim; i++) {
      float observation[Contract::kObservationDim];
      std::memcpy(observation, kGood, sizeof(observation));
      observation[i] = value;
      float action[2] = {99.0f, 99.0f};
      CHECK(place->act(Host{}, observation, action) == ActionSource::observation_not_finite);
      CHECK(action[0] == 0.0f);
      CHECK(action[1] == -0.125f);
    }
  }
  float action[2];
  CHECK(place->act(Host{}, kGood, action) == ActionSource::from_policy);
}

TEST_CASE("an output that is not finite is a fault, though all weights and observations are") {
  const Bytes image = overflowing_image();
  const auto place = std::make_unique<Place>(low_contract());
  REQUIRE(place->accept(Host{}, image.data(), image.size()).accepted());
  float observation[Contract::kObservationDim] = {1.0f, 0.0f, 0.0f, 0.0f, 0.0f};
  float action[2];
  CHECK(place->act(Host{}, observation, action) == ActionSource::from_policy);
  CHECK(action[0] == 1.0f);  // clamped
  observation[0] = 2.0f;     // beyond its range, as observations may be
  CHECK(place->act(Host{}, observation, action) == ActionSource::output_not_finite);
  CHECK(action[0] == 0.5f);
  CHECK(action[1] == 0.25f);
}
