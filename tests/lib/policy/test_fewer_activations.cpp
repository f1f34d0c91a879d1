// A place that leaves activations out refuses the images that have one, and runs the others as
// before.
#define RLT_ACTIVATIONS 0x0b  // identity, ReLU, tanh
#include <doctest/doctest.h>

#include <vector>

#include "policy_networks.h"
#include "rltools/devices/host.h"
#include "rltools/policy/runtime.h"

using namespace rlt;
using namespace policy_networks;

namespace {

template <Activation Hidden, Activation Output>
std::vector<std::uint8_t> image_of() {
  using N = Network<Hidden, Output>;
  std::vector<std::uint8_t> image(policy_image_bytes<N>());
  write<N>(Host{}, kNoNormalizer, image.data());
  return image;
}

PolicyVerdict verdict_on(const std::vector<std::uint8_t>& image) {
  static PolicyRunner<64, 0, 8192> policy(policy_contract<Contract>());
  return policy.accept(Host{}, image.data(), image.size());
}

}  // namespace

TEST_CASE("what is left out is unknown") {
  static_assert(has_activation(Activation::identity) && has_activation(Activation::tanh));
  static_assert(!has_activation(Activation::gelu) && !has_activation(Activation::softplus));
  const PolicyVerdict first = verdict_on(image_of<Activation::gelu, Activation::tanh>());
  CHECK(first.reason == PolicyReason::malformed);
  CHECK(first.where == 0);
  const PolicyVerdict last = verdict_on(image_of<Activation::relu, Activation::sigmoid>());
  CHECK(last.reason == PolicyReason::malformed);
  CHECK(last.where == 3);
}

// The networks wrote the images' examples with activation_forward(), which knows them all.
TEST_CASE("what is left computes the same bits") {
  CHECK(verdict_on(image_of<Activation::relu, Activation::tanh>()).accepted());
  CHECK(verdict_on(image_of<Activation::tanh, Activation::identity>()).accepted());
}
