// Writes policy images to the folder argv[1], for the Python tests: of an untrained pendulum policy
// and of a smaller one, of a policy two of whose actions are choices, of policies that see their
// own last actions and sums, of recurrent ones, and one for each activation with a normalizer.
// Prints mean, smallest and largest return of evaluate() for the first.
#include <cstdio>
#include <string>

#include "pendulum_td3.h"
#include "policy_networks.h"
#include "rltools/devices/generic.h"
#include "rltools/policy/contracts/pendulum.h"
#include "rltools/policy/contracts/quadrotor.h"
#include "rltools/rl/environments/with_action_history.h"
#include "rltools/rl/environments/with_sums.h"
#include "rltools/rl/evaluation.h"
#include "rltools/rl/policy_of_training.h"

namespace {

using namespace policy_networks;

bool save(const std::string& path, const std::uint8_t* bytes, std::size_t count) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  const bool written = std::fwrite(bytes, 1, count, file) == count;
  return std::fclose(file) == 0 && written;
}

template <Activation A>
bool save_network(const std::string& folder, const char* name) {
  using N = Network<A, A>;
  static std::uint8_t image[policy_image_bytes<N>(true)];
  write<N>(Generic{}, kNormalizer, image);
  return save(folder + "/" + name + ".rltp", image, sizeof(image));
}

bool save_pendulum(const std::string& folder) {
  static Learner<PendulumTd3> learner;
  static Replay<PendulumTd3> replay;
  static Scratch<PendulumTd3> scratch;
  static std::uint8_t image[kPolicyImageBytes<PendulumTd3>];
  Training<PendulumTd3> training{{}, learner, replay, scratch};
  initialize(Generic{}, training);
  build_policy_image(Generic{}, training, kStateSha256, image);
  const EvaluationReport report = evaluate(Generic{}, training);
  std::printf("%.9g %.9g %.9g\n", static_cast<double>(report.mean), static_cast<double>(report.min),
              static_cast<double>(report.max));
  return save(folder + "/pendulum.rltp", image, sizeof(image));
}

// A third as large, for boards whose link or flash is slow.
bool save_small_pendulum(const std::string& folder) {
  using Pendulum = contracts::Pendulum;
  using N = Mlp<float, Dimensions<Pendulum::kObservationDim, 32, 32, Pendulum::kActionDim>,
                Activation::relu, Activation::tanh>;
  static N network;
  static std::uint8_t image[policy_image_bytes<N>()];
  initialize_kaiming(Generic{}, network, 7, 0);
  write_policy_image(Generic{}, network, policy_contract<Pendulum>(), kNoNormalizer, kOrigin,
                     image);
  return save(folder + "/small_pendulum.rltp", image, sizeof(image));
}

// Of an environment that a board knows without its history.
template <class Environment, int Hidden>
bool save_remembering(const std::string& path) {
  using N =
      Mlp<float, Dimensions<Environment::kObservationDim, Hidden, Hidden, Environment::kActionDim>,
          Activation::relu, Activation::tanh>;
  static N network;
  static std::uint8_t image[policy_image_bytes<N>()];
  initialize_kaiming(Generic{}, network, 7, 0);
  const PolicyOrigin origin{"remembering", Environment::kName, 1234, 7, 1, kStateSha256};
  write_policy_image(Generic{}, network, policy_contract<Environment>(), kNoNormalizer, origin,
                     image);
  return save(path, image, sizeof(image));
}

bool save_chooser(const std::string& folder) {
  static ChoosingNetwork network;
  initialize_kaiming(Generic{}, network, 7, 0);
  const Bytes image = image_of_network(Generic{}, network, policy_contract<Chooser>(), kNormalizer);
  const Bytes masked = image_of_network(Generic{}, network, policy_contract<MaskedChooser>());
  return save(folder + "/choosing.rltp", image.data(), image.size()) &&
         save(folder + "/masked.rltp", masked.data(), masked.size());
}

// Trained in steps of so many of the contract's intervals.
template <class Place, class N>
bool save_recurrent(const std::string& path, const char* environment,
                    std::uint32_t ticks_per_step) {
  static N network;
  static std::uint8_t image[policy_image_bytes<N>()];
  initialize_kaiming(Generic{}, network, 7, 0);
  const PolicyOrigin origin{"recurrent", environment, 1234, 7, 1, kStateSha256};
  write_policy_image(Generic{}, network, policy_contract<Place>(), kNoNormalizer, origin, image,
                     ticks_per_step);
  return save(path, image, sizeof(image));
}
constexpr Activation kRelu = Activation::relu, kTanh = Activation::tanh;
// Of the size of a policy that adapts to its airframe (arXiv 2509.11481): 22-16-GRU16-4.
template <class Place>
using AdaptingQuadrotor =
    Sequential<float, Place::kObservationDim, Dense<16, kRelu>, Gru<16>, Dense<4, kTanh>>;
using RecurrentPendulum = Sequential<float, contracts::Pendulum::kObservationDim, Dense<16, kRelu>,
                                     Gru<16>, Dense<1, kTanh>>;
using RecurrentQuadrotor = Sequential<float, contracts::Quadrotor::kObservationDim,
                                      Dense<16, kRelu>, Gru<16>, Dense<4, kTanh>>;

// For the images alone.
struct BareQuadrotor : contracts::Quadrotor, EnvironmentDefaults {
  using Scalar = float;
  struct State {};
  static constexpr const char* kName = "quadrotor";
};
// With its last two actions and the sum of an error, 22 observations.
using SeeingQuadrotor = WithActionHistory<WithSums<BareQuadrotor, 1>, 2>;

}  // namespace

#define AND_SAVE_NETWORK(Name, NeedsInput, Value, Derivative) \
  &&save_network<Activation::Name>(folder, #Name)

int main(int argument_count, char** arguments) {
  if (argument_count != 2) return 2;
  const std::string folder = arguments[1];
  const bool saved =
      save_pendulum(folder) && save_chooser(folder) && save_small_pendulum(folder) &&
      save_remembering<WithActionHistory<Pendulum<float>, 2>, 32>(folder +
                                                                  "/remembering_pendulum.rltp") &&
      save_remembering<WithActionHistory<BareQuadrotor, 4>, 64>(folder +
                                                                "/remembering_quadrotor_4.rltp") &&
      save_remembering<WithActionHistory<BareQuadrotor, 7>, 64>(folder +
                                                                "/remembering_quadrotor_7.rltp") &&
      save_remembering<WithActionHistory<WithSums<BareQuadrotor, 3>, 4>, 64>(
          folder + "/summing_quadrotor.rltp") &&
      save_remembering<WithSums<BareQuadrotor, 3>, 64>(folder + "/only_summing_quadrotor.rltp") &&
      save_recurrent<contracts::Pendulum, RecurrentPendulum>(folder + "/recurrent_pendulum.rltp",
                                                             "Pendulum-v1", 1) &&
      save_recurrent<contracts::Quadrotor, RecurrentQuadrotor>(folder + "/recurrent_quadrotor.rltp",
                                                               "quadrotor", 5) &&
      save_recurrent<SeeingQuadrotor, AdaptingQuadrotor<SeeingQuadrotor>>(
          folder + "/adapting_quadrotor.rltp", "quadrotor", 5)
          RLT_ACTIVATION_LIST(AND_SAVE_NETWORK);
  return saved ? 0 : 1;
}
