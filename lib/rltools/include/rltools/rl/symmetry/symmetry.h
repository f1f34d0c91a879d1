// Networks that are the same in an environment's mirrors (Mirrored in environment.h): for a
// mirrored observation an actor computes the mirrored action, and a critic the same value. Such
// networks are learned from each row as from all of its images, without computing these: the loss
// of a row and of its image have gradients that are each other's image, so that the mean over the
// images of a gradient is that of a batch with all images in it (van der Pol et al. 2020, "MDP
// homomorphic networks", arXiv 2006.16908, are symmetric networks of this kind). As networks they
// are ordinary ones: nothing that runs a policy knows of it.
//
// A hidden unit's image in mirror m is the unit whose number differs in bit m. Units of a layer are
// therefore as many as a multiple of 2^mirrors.
//
// Parameters and their images have the same bits but for the sign, from the beginning on: gradients
// are made so, and Adam's step is odd.
#pragma once

#include "rltools/core/require.h"
#include "rltools/nn/mlp.h"
#include "rltools/rl/fingerprint.h"
#include "rltools/rl/gaussian.h"
#include "rltools/rl/normalizer.h"
#include "rltools/rl/training.h"

namespace rlt {

namespace detail {

// Return whether each mirror undoes itself, two may be applied in either order, and what a policy
// sees stays that.
template <class Environment, class Image>
constexpr bool are_mirrors(int elements, int seen, Image&& image) {
  for (int m = 0; m < Environment::kMirrors; m++) {
    for (int i = 0; i < elements; i++) {
      const Mirrored once = image(m, i);
      if (once.element < 0 || once.element >= elements) return false;
      if ((i < seen) != (once.element < seen)) return false;
      const Mirrored twice = image(m, once.element);
      if (twice.element != i || once.sign * twice.sign != 1) return false;
      for (int other = 0; other < m; other++) {
        const Mirrored first = image(other, i), a = image(other, once.element);
        const Mirrored b = image(m, first.element);
        if (a.element != b.element || a.sign * once.sign != b.sign * first.sign) return false;
      }
    }
  }
  return true;
}

template <class Environment>
constexpr bool observations_mirror() {
  constexpr int kSeen = Environment::kObservationDim, kAll = kCriticObservationDim<Environment>;
  return are_mirrors<Environment>(kAll, kSeen, Environment::mirrored_observation);
}
template <class Environment>
constexpr bool actions_mirror() {
  constexpr int kAll = Environment::kActionDim;
  return are_mirrors<Environment>(kAll, kAll, Environment::mirrored_action);
}

template <class Network>
constexpr bool units_mirror(int mirrors) {
  for (int layer = 0; layer + 1 < Network::kLayerCount; layer++) {
    if (Network::output_dim(layer) % (1 << mirrors) != 0) return false;
  }
  return true;
}

// Images of the parameters of an actor, or of a critic, in a mirror. A layer's bias counts as the
// weights of one more input, which is its own image, and lies behind them in memory. Behind what it
// sees of a state, a critic may see an action; behind an action, an actor may give the logarithms
// of its deviations, which have no sign.
template <class E, class Network>
struct ActorImages {
  using Environment = typename E::Environment;
  static constexpr Mirrored input(int mirror, int layer, int i) {
    constexpr int kSeen = kCriticObservationDim<Environment>;
    if (i == Network::input_dim(layer)) return {i, 1};
    if (layer > 0) return {i ^ 1 << mirror, 1};
    if (i < kSeen) return Environment::mirrored_observation(mirror, i);
    const Mirrored action = Environment::mirrored_action(mirror, i - kSeen);
    return {kSeen + action.element, action.sign};
  }
  static constexpr Mirrored output(int mirror, int layer, int o) {
    constexpr int kAction = Environment::kActionDim;
    if (layer + 1 < Network::kLayerCount) return {o ^ 1 << mirror, 1};
    if (o < kAction) return Environment::mirrored_action(mirror, o);
    return {kAction + Environment::mirrored_action(mirror, o - kAction).element, 1};
  }
};
template <class E, class Network>
struct CriticImages : ActorImages<E, Network> {
  static constexpr Mirrored output(int mirror, int layer, int o) {
    return {layer + 1 == Network::kLayerCount ? o : o ^ 1 << mirror, 1};
  }
};

// Call visit(layer, input, output) for each parameter, of biases too.
template <class Network, class Visit>
void for_each_parameter(Visit&& visit) {
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    for (int i = 0; i <= Network::input_dim(layer); i++) {
      for (int o = 0; o < Network::output_dim(layer); o++) visit(layer, i, o);
    }
  }
}

// Set two numbers that are each other's images to their mean; to 0 where one is its own opposite.
template <class T>
void average_pair(T& a, T& b, int sign) {
  const T mean = T(0.5) * (a + static_cast<T>(sign) * b);
  a = mean;
  b = static_cast<T>(sign) * mean;
}

// Set each parameter to that of its images that comes first.
template <class Images, int Mirrors, class Network>
void copy_to_images(Network& network) {
  for_each_parameter<Network>([&](int layer, int i, int o) {
    auto* values = network.weights(layer);
    const int width = Network::output_dim(layer), own = i * width + o;
    int first = own, sign = 1;
    bool is_own_opposite = false;
    for (int images = 1; images < 1 << Mirrors; images++) {
      Mirrored input{i, 1}, output{o, 1};
      for (int mirror = 0; mirror < Mirrors; mirror++) {
        if ((images >> mirror & 1) == 0) continue;
        const Mirrored next_input = Images::input(mirror, layer, input.element);
        const Mirrored next_output = Images::output(mirror, layer, output.element);
        input = {next_input.element, input.sign * next_input.sign};
        output = {next_output.element, output.sign * next_output.sign};
      }
      const int position = input.element * width + output.element;
      const int image_sign = input.sign * output.sign;
      if (position == own && image_sign < 0) is_own_opposite = true;
      if (position >= first) continue;
      first = position;
      sign = image_sign;
    }
    using T = typename Network::Scalar;
    values[own] = is_own_opposite ? T(0) : static_cast<T>(sign) * values[first];
  });
}

// The images of a layer's rows and columns in a mirror.
template <class Images, int Layer>
struct LayerImages {
  int mirror;

  Mirrored row(int i) const { return Images::input(mirror, Layer, i); }
  Mirrored column(int o) const { return Images::output(mirror, Layer, o); }
};

}  // namespace detail

// Set each element of values (Rows, Columns) to the mean of itself and of its image: row by row,
// with the images of the columns at hand.
template <int Rows, int Columns, class Images, class T>
Generic average_with_images(Generic device, T* values, const Images& images) {
  int position[Columns];
  T sign[Columns];
  for (int o = 0; o < Columns; o++) {
    const Mirrored column = images.column(o);
    position[o] = column.element;
    sign[o] = static_cast<T>(column.sign);
  }
  for (int i = 0; i < Rows; i++) {
    const Mirrored input = images.row(i);
    if (input.element < i) continue;
    T* row = values + i * Columns;
    T* image = values + input.element * Columns;
    T mean[Columns];
    const T half = T(0.5) * static_cast<T>(input.sign);
    for (int o = 0; o < Columns; o++) {
      mean[o] = T(0.5) * row[o] + half * sign[o] * image[position[o]];
    }
    for (int o = 0; o < Columns; o++) row[o] = mean[o];
    for (int o = 0; o < Columns; o++) {
      image[position[o]] = static_cast<T>(input.sign) * sign[o] * mean[o];
    }
  }
  return device;
}

namespace detail {

// Set each parameter to the mean over its images.
template <class Images, int Mirrors, class Device, class Network, int... Layers>
void average_images(Device device, Network& network, std::integer_sequence<int, Layers...>) {
  for (int mirror = 0; mirror < Mirrors; mirror++) {
    (average_with_images<Network::input_dim(Layers) + 1, Network::output_dim(Layers)>(
         device, network.weights(Layers), LayerImages<Images, Layers>{mirror}),
     ...);
  }
}
template <class Images, int Mirrors, class Device, class Network>
void average_images(Device device, Network& network) {
  average_images<Images, Mirrors>(device, network,
                                  std::make_integer_sequence<int, Network::kLayerCount>{});
}

}  // namespace detail

// Learning of an experiment that is kMirrored; the algorithms call it through rl/experiment.h.
template <class E>
struct Symmetry {
  using Environment = typename E::Environment;
  using Actor = typename E::Actor;
  using Critic = typename E::Critic;
  using ActorImages = detail::ActorImages<E, Actor>;
  using CriticImages = detail::CriticImages<E, Critic>;
  static constexpr int kCount = kMirrorsLearned<E>;

  // Check the contract of its networks and environment.
  template <bool Asserts>
  static constexpr bool check() {
    constexpr bool kIsRecurrentNetwork = kIsRecurrent<Actor> || kIsRecurrent<Critic>;
    bool kept = true;
    RLT_REQUIRE(!kIsDiscrete<Environment>,
                "the experiment is kMirrored, and its actions are choices");
    RLT_REQUIRE(!kIsRecurrentNetwork,
                "the experiment is kMirrored, and one of its networks is recurrent");
    if constexpr (!kIsRecurrentNetwork) {
      constexpr bool kUnitsMirror =
          detail::units_mirror<Actor>(kCount) && detail::units_mirror<Critic>(kCount);
      RLT_REQUIRE(kUnitsMirror,
                  "the experiment is kMirrored, and the width of a hidden layer is not a multiple "
                  "of 2 to the power of the environment's kMirrors");
    }
    RLT_REQUIRE(
        detail::observations_mirror<Environment>() && detail::actions_mirror<Environment>(),
        "the environment's mirrors do not each undo themselves, or depend on their order, or take "
        "what a policy sees to what it does not see");
    return kept;
  }

  // Set all images of a parameter to the value of one.
  static void make_symmetric(Actor& actor, Critic& critic) {
    detail::copy_to_images<ActorImages, kCount>(actor);
    detail::copy_to_images<CriticImages, kCount>(critic);
  }

  // Set each element of a gradient to the mean over its images.
  template <class Device>
  static void average_actor(Device device, Actor& gradient) {
    detail::average_images<ActorImages, kCount>(device, gradient);
  }
  template <class Device>
  static void average_critic(Device device, Critic& gradient) {
    detail::average_images<CriticImages, kCount>(device, gradient);
  }
  template <class Device, class T, int Action>
  static void average(Device device, Actor& actor_gradient, Critic& critic_gradient,
                      LogStd<T, Action>& log_std_gradient) {
    average_actor(device, actor_gradient);
    average_critic(device, critic_gradient);
    for (int mirror = 0; mirror < kCount; mirror++) {
      for (int i = 0; i < Action; i++) {
        const int image = Environment::mirrored_action(mirror, i).element;
        T* values = log_std_gradient.values;
        if (i < image) detail::average_pair(values[i], values[image], 1);
      }
    }
  }

  // Turn the normalizer's moments into those of its observations and of all their images.
  template <class Device, class T, int D>
  static void average(Device, Normalizer<T, D>& normalizer) {
    for (int mirror = 0; mirror < kCount; mirror++) {
      for (int i = 0; i < D; i++) {
        const Mirrored image = Environment::mirrored_observation(mirror, i);
        if (i > image.element) continue;
        double* mean = normalizer.mean;
        double* squares = normalizer.sum_of_squares;
        const double half = 0.5 * (mean[i] - image.sign * mean[image.element]);
        detail::average_pair(mean[i], mean[image.element], image.sign);
        squares[i] = squares[image.element] =
            0.5 * (squares[i] + squares[image.element]) + normalizer.count * half * half;
      }
    }
    apply_moments(normalizer);
  }

  // Return a hash of the image of each element, for the fingerprint.
  static std::uint32_t hash() {
    detail::Fnv1a fnv;
    const auto add = [&](Mirrored image) {
      fnv.add(static_cast<std::uint32_t>(image.element));
      fnv.add(static_cast<std::uint32_t>(image.sign));
    };
    for (int mirror = 0; mirror < Environment::kMirrors; mirror++) {
      for (int i = 0; i < kCriticObservationDim<Environment>; i++) {
        add(Environment::mirrored_observation(mirror, i));
      }
      for (int i = 0; i < Environment::kActionDim; i++) {
        add(Environment::mirrored_action(mirror, i));
      }
    }
    return fnv.hash;
  }
};

}  // namespace rlt
