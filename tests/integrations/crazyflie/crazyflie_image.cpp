// Writes an image of 13-64-64-4 for the Crazyflie to the standard output; its seed may be given.
#include <cstdio>
#include <cstdlib>

#include "rltools/devices/generic.h"
#include "rltools/policy/contracts/quadrotor.h"
#include "rltools/policy/image.h"

using namespace rlt;

int main(int count, char** words) {
  using Network = Mlp<float, Dimensions<13, 64, 64, 4>, Activation::relu, Activation::tanh>;
  static Network network;
  const auto seed = static_cast<std::uint32_t>(count > 1 ? std::atoi(words[1]) : 1);
  initialize_kaiming(Generic{}, network, seed, 0);
  static std::uint8_t image[policy_image_bytes<Network>()];
  static const std::uint8_t sha[32] = {};
  write_policy_image(Generic{}, network, policy_contract<contracts::Quadrotor>(),
                     {nullptr, nullptr}, {"hover-test", "Quadrotor-v0", 1, 2, 3, sha}, image);
  return std::fwrite(image, sizeof(image), 1, stdout) == 1 ? 0 : 1;
}
