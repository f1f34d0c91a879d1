// The policy image: what image.h writes with the host's kernels, runtime.h reproduces bit for bit
// with its own, and what is no image is refused by its own name. The rules of an image one by one:
// test_policy_reader.cpp.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "pendulum_td3.h"
#include "policy_networks.h"
#include "rltools/devices/host.h"
#include "rltools/policy/runtime.h"
#include "rltools/rl/policy_of_training.h"

using namespace policy_networks;
namespace {

template <class N>
Bytes image_of(const PolicyNormalizer& normalizer = kNoNormalizer) {
  Bytes image(policy_image_bytes<N>(normalizer.mean != nullptr));
  write<N>(Host{}, normalizer, image.data());
  return image;
}

// Offsets in the default network's image, without a normalizer (docs/policy_image.md).
constexpr std::size_t kChannels = 144 + 8 * 4;
constexpr std::size_t kParameters = kChannels + 48 * 7;
constexpr std::size_t kExamples = kParameters + 4 * (6 * 13 + 14 * 24 + 25 * 7 + 8 * 2);
constexpr std::size_t kExampleBytes = 4 * (5 + 1 + 2 * 2);

template <class T>
void patch(Bytes& image, std::size_t offset, T value) {
  std::memcpy(image.data() + offset, &value, sizeof(value));
}

void restore_crc32(Bytes& image) {
  patch(image, 12, policy_image_crc32(image.data(), image.size()));
}

template <std::size_t ScratchFloats = kScratchFloats>
PolicyVerdict accept(const Bytes& image,
                     const PolicyContract& contract = policy_contract<Contract>()) {
  PolicyRunner<ScratchFloats, 0, kImageBytes> policy(contract);
  const PolicyVerdict verdict = policy.accept(Generic{}, image.data(), image.size());
  CHECK((policy.view() != nullptr) == verdict.accepted());
  return verdict;
}

// The verdict on the default image after a change, with the checksum made to match.
template <class T>
PolicyVerdict verdict_after(std::size_t offset, T value) {
  Bytes image = image_of<Default>();
  patch(image, offset, value);
  restore_crc32(image);
  return accept(image);
}

// runtime.h gives the bits of the network's own forward pass with the host's kernels.
template <class N>
void check_same_bits(const PolicyNormalizer& normalizer) {
  const Bytes image = image_of<N>(normalizer);
  static N network;
  initialize_kaiming(Host{}, network, 7, 0);
  PolicyView policy;
  REQUIRE(parse_policy(image.data(), image.size(), policy).accepted());
  std::vector<float> scratch(scratch_floats_to_run(policy));
  PolicyRunner<kScratchFloats, 0, kImageBytes> acting(policy_contract<Contract>());
  REQUIRE(acting.accept(Host{}, image.data(), image.size()).accepted());
  for (std::uint32_t sample = 0; sample < 200; sample++) {
    Matrix<float, 1, N::kInputDim> observation, input;
    Matrix<float, 1, N::kOutputDim> expected;
    MlpBuffer<N, 1> buffer;
    for (int i = 0; i < N::kInputDim; i++) {
      const Channel& channel = Contract::kObservations[i];
      observation.values[i] =
          uniform<float>({1, Purpose::shuffle, sample}, static_cast<std::uint32_t>(i),
                         3.0f * channel.minimum, 3.0f * channel.maximum);
      input.values[i] = normalizer.mean == nullptr
                            ? observation.values[i]
                            : (observation.values[i] - kMean[i]) * kInverseStd[i];
    }
    forward(Host{}, network, input, expected, buffer);
    float output[N::kOutputDim];
    policy_forward(Generic{}, policy, observation.values, nullptr, output, scratch.data());
    CHECK(std::memcmp(output, expected.values, sizeof(output)) == 0);
    float action[N::kOutputDim];
    REQUIRE(acting.act(Host{}, observation.values, action) == ActionSource::from_policy);
    for (int i = 0; i < N::kOutputDim; i++) {
      CHECK(action[i] >= Contract::kActions[i].minimum);
      CHECK(action[i] <= Contract::kActions[i].maximum);
    }
  }
}

template <Activation A, Activation B>
void check_activations() {
  check_same_bits<Network<A, B>>(kNoNormalizer);
  check_same_bits<Network<A, B>>(kNormalizer);
}

}  // namespace

TEST_CASE("an image gives the same bits as the network, for every activation") {
  static_assert(kActivationCount == 9);
  check_activations<Activation::identity, Activation::relu>();
  check_activations<Activation::gelu, Activation::tanh>();
  check_activations<Activation::sigmoid, Activation::softplus>();
  check_activations<Activation::elu, Activation::silu>();
  check_activations<Activation::hardtanh, Activation::tanh>();
}

TEST_CASE("the image of a training run says where it comes from") {
  static Learner<PendulumTd3> learner;
  static Replay<PendulumTd3> replay;
  static Scratch<PendulumTd3> scratch;
  Training<PendulumTd3> training{{}, learner, replay, scratch};
  training.hyperparameters.seed = 3;
  initialize(Host{}, training);
  learner.progress.step = 150;
  alignas(4) static std::uint8_t image[kPolicyImageBytes<PendulumTd3>];
  build_policy_image(Host{}, training, kStateSha256, image);

  static PolicyRunner<2 * 64 + 2, 0, sizeof(image)> place(
      policy_contract<PendulumTd3::Environment>());
  REQUIRE(place.accept(Generic{}, image, sizeof(image)).accepted());
  const PolicyView& policy = *place.view();
  CHECK(std::strcmp(policy.header->experiment, "pendulum-td3") == 0);
  CHECK(std::strcmp(policy.header->environment, "Pendulum-v1") == 0);
  CHECK(policy.header->step == 150);
  CHECK(policy.header->seed == 3);
  CHECK(policy.header->step_interval_us == 50000);
  CHECK(policy.header->fingerprint == fingerprint(training));
  CHECK(std::memcmp(policy.header->state_sha256, kStateSha256, 32) == 0);
  CHECK(std::memcmp(policy.parameters, learner.actor.values, sizeof(learner.actor.values)) == 0);
}

TEST_CASE("the examples lie within the ranges and differ from each other") {
  const Bytes image = image_of<Default>();
  PolicyView policy;
  REQUIRE(parse_policy(image.data(), image.size(), policy).accepted());
  REQUIRE(policy.header->example_count == 8);
  for (std::uint32_t example = 0; example < 8; example++) {
    const AliasingFloat* values = policy.examples + example * example_floats(policy);
    for (int i = 0; i < Contract::kObservationDim; i++) {
      CHECK(values[i] >= Contract::kObservations[i].minimum);
      CHECK(values[i] < Contract::kObservations[i].maximum);
      if (example > 0) CHECK(values[i] != policy.examples[i]);
    }
  }
}

TEST_CASE("a normalized action maps to its range, and is clamped") {
  CHECK(physical_action(-1.0f, -0.25f, 0.75f) == -0.25f);
  CHECK(physical_action(0.0f, -0.25f, 0.75f) == 0.25f);
  CHECK(physical_action(1.0f, -0.25f, 0.75f) == 0.75f);
  CHECK(physical_action(7.0f, -0.25f, 0.75f) == 0.75f);
  CHECK(physical_action(-7.0f, -0.25f, 0.75f) == -0.25f);
  CHECK(physical_action(0.3f, -2.0f, 2.0f) == 0.3f * 2.0f);
}

TEST_CASE("a normalized action is the way back from a physical one") {
  for (int i = -1000; i <= 1000; i++) {
    const float action = static_cast<float>(i) * 1e-3f;
    CHECK(normalized_action(physical_action(action, -2.0f, 2.0f), -2.0f, 2.0f) == action);
    CHECK(normalized_action(physical_action(action, -1.0f, 1.0f), -1.0f, 1.0f) == action);
    const float back = normalized_action(physical_action(action, -0.4f, 0.4f), -0.4f, 0.4f);
    CHECK(math::absolute(back - action) <= 0x1p-23f * math::absolute(action));
    CHECK(math::absolute(normalized_action(physical_action(action, 1.0f, 4.0f), 1.0f, 4.0f) -
                         action) <= 0x1p-22f);
  }
  CHECK(normalized_action(3.0f, -2.0f, 2.0f) == 1.0f);
  CHECK(normalized_action(-3.0f, -2.0f, 2.0f) == -1.0f);
  CHECK(normalized_action(0.0f, 0.0f, 4.0f) == -1.0f);
  CHECK(normalized_action(1.5, -2.0f, 2.0f) == 0.75);
}

TEST_CASE("what is no image is refused by name") {
  const Bytes image = image_of<Default>();
  CHECK(accept(image).accepted());
  Bytes shifted(image.size() + 1);
  std::memcpy(shifted.data() + 1, image.data(), image.size());
  PolicyView policy;
  CHECK(parse_policy(shifted.data() + 1, image.size(), policy).reason == PolicyReason::misaligned);
  CHECK(accept(Bytes(image.begin(), image.begin() + 143)).reason == PolicyReason::too_short);
  CHECK(accept(Bytes{}).reason == PolicyReason::too_short);
  CHECK(accept(Bytes(image.begin(), image.end() - 4)).reason == PolicyReason::wrong_size);
  Bytes longer = image;
  longer.push_back(0);
  CHECK(accept(longer).reason == PolicyReason::wrong_size);
  CHECK(accept(Bytes(kImageBytes + 1)).reason == PolicyReason::too_large);
  CHECK(verdict_after<char>(0, 'X').reason == PolicyReason::bad_magic);
  CHECK(verdict_after<std::uint16_t>(4, 3).reason == PolicyReason::unknown_version);
  CHECK(verdict_after<std::uint16_t>(4, 2).reason == PolicyReason::wrong_size);
  CHECK(verdict_after<std::uint16_t>(6, 140).reason == PolicyReason::wrong_size);
}

TEST_CASE("a policy that computes other bits than its examples is refused") {
  const Bytes original = image_of<Default>(kNormalizer);
  const std::size_t parameters = kParameters + 2 * 4 * 5;
  const std::size_t examples = kExamples + 2 * 4 * 5;
  REQUIRE(accept(original).accepted());
  // a weight or a bias of each layer, off by one unit in its last place
  for (std::size_t number : {0u, 6u * 13u - 1u, 6u * 13u + 100u, 6u * 13u + 14u * 24u + 80u}) {
    Bytes image = original;
    float value;
    std::memcpy(&value, image.data() + parameters + 4 * number, 4);
    patch(image, parameters + 4 * number, std::nextafter(value, 10.0f));
    restore_crc32(image);
    CHECK(accept(image).reason == PolicyReason::example_not_reproduced);
  }
  for (std::uint32_t example = 0; example < 8; example++) {
    for (std::size_t offset = 0; offset < kExampleBytes; offset += 4) {
      Bytes image = original;
      // the last bit of a result, or one of an observation that rounding does not hide
      image[examples + example * kExampleBytes + offset + (offset < 4 * 5 ? 2 : 0)] ^= 1;
      restore_crc32(image);
      const PolicyVerdict verdict = accept(image);
      CHECK(verdict.reason == PolicyReason::example_not_reproduced);
      CHECK(verdict.where == example);
    }
  }
}
