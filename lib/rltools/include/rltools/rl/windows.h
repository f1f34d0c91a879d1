// On-policy learning with recurrent networks (algorithms/ppo.h): a rollout is cut into windows of
// kWindowSteps steps of an environment, which are learned from as a whole. Without a recurrent
// network a window is one step, and nothing of this is compiled.
//
// The hidden state of a network before each window is kept with the rollout: the actor's as it
// acted, the critic's as it computed the values. Within a window it follows from the networks that
// are learned, and so do the gradients. It is zero where an episode begins.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rltools/core/require.h"
#include "rltools/nn/window_passes.h"
#include "rltools/rl/rollout_buffer.h"
#include "rltools/rl/training.h"

namespace rlt {

namespace detail {

template <class E, class = void>
struct WindowSteps {
  static constexpr int kStated = 1;
};
template <class E>
struct WindowSteps<E, std::void_t<decltype(E::kWindowSteps)>> {
  static constexpr int kStated = E::kWindowSteps;
};

}  // namespace detail

// Steps of a window of an experiment: E::kWindowSteps, or one.
template <class E>
constexpr int kWindowSteps =
    detail::WindowSteps<E>::kStated > 0 ? detail::WindowSteps<E>::kStated : 1;
template <class E>
constexpr bool kHasWindows = kHasRecurrent<E>;

// Contract of an experiment with windows; one without recurrent networks has none.
template <class E>
struct WindowContract {
  template <bool Asserts>
  static constexpr bool check() {
    constexpr int kSteps = kWindowSteps<E>;
    bool kept = true;
    RLT_REQUIRE(kHasWindows<E> || kSteps == 1,
                "the experiment states kWindowSteps, and none of its networks is recurrent");
    RLT_REQUIRE(detail::WindowSteps<E>::kStated > 0, "kWindowSteps must be at least 1");
    RLT_REQUIRE(Size<E::kRolloutSteps % kSteps>::template kIs<0>,
                "kWindowSteps does not divide kRolloutSteps: the remainder is not 0");
    RLT_REQUIRE(Size<E::kTileRows % kSteps>::template kIs<0>,
                "kWindowSteps does not divide kTileRows: the remainder is not 0");
    return kept;
  }
};

// The hidden states of a network, Dim numbers each: before the observations that come next, and
// before each of the rollout's windows. No data where the network has none.
template <class T, int N, int Windows, int Dim>
struct RolloutStates {
  T present[N * Dim];
  T window[Windows * N * Dim];  // of an environment's window: row = window * N + environment
};
template <class T, int N, int Windows>
struct RolloutStates<T, N, Windows, 0> {};

// A rollout with the hidden states of actor and critic.
template <class Rollout, class T, int Windows, int ActorDim, int CriticDim>
struct RolloutWithStates : Rollout {
  RolloutStates<T, Rollout::kEnvironments, Windows, ActorDim> actor_state;
  RolloutStates<T, Rollout::kEnvironments, Windows, CriticDim> critic_state;
};
template <class Rollout, class E>
using RolloutOfWindows = std::conditional_t<
    kHasWindows<E>,
    RolloutWithStates<Rollout, typename E::Scalar, E::kRolloutSteps / kWindowSteps<E>,
                      kStateDim<typename E::Actor>, kStateDim<CriticOf<E>>>,
    Rollout>;

// The states of actor and critic; nothing of a rollout without.
struct NoStates {};
template <class Rollout>
NoStates actor_state_of(Rollout&) {
  return {};
}
template <class Rollout, class T, int W, int A, int C>
auto& actor_state_of(RolloutWithStates<Rollout, T, W, A, C>& rollout) {
  return rollout.actor_state;
}
template <class Rollout>
NoStates critic_state_of(Rollout&) {
  return {};
}
template <class Rollout, class T, int W, int A, int C>
auto& critic_state_of(RolloutWithStates<Rollout, T, W, A, C>& rollout) {
  return rollout.critic_state;
}

// Visit them: visitor(present's name, window's name, states, numbers of a state).
template <class Rollout, class Visitor>
void for_each_states(Rollout&, Visitor&&) {}
template <class Rollout, class T, int W, int A, int C, class Visitor>
void for_each_states(RolloutWithStates<Rollout, T, W, A, C>& rollout, Visitor&& visitor) {
  if constexpr (A > 0) {
    visitor("rollout/actor_state", "rollout/window_actor_state", rollout.actor_state, A);
  }
  if constexpr (C > 0) {
    visitor("rollout/critic_state", "rollout/window_critic_state", rollout.critic_state, C);
  }
}
template <class Rollout>
void clear_states(Rollout& rollout) {
  for_each_states(rollout, [](const char*, const char*, auto& states, int) {
    for (auto& value : states.present) value = 0;
    for (auto& value : states.window) value = 0;
  });
}

// Restart the states of episodes that begin again, also after a rollout whose values have been
// computed.
template <class Rollout>
void restart_states(Rollout&, bool) {}
template <class Rollout, class T, int W, int A, int C>
void restart_states(RolloutWithStates<Rollout, T, W, A, C>& rollout, bool critic_too) {
  if constexpr (A > 0) {
    for (T& value : rollout.actor_state.present) value = T(0);
  }
  if constexpr (C > 0) {
    if (!critic_too) return;  // those before the rollout under way
    for (T& value : rollout.critic_state.present) value = T(0);
  }
}

// A network's memory for a step of N environments, for a tile, and for gradients of either network.
template <class Network, int N, bool Recurrent = kIsRecurrent<Network>>
struct StepBufferOf {
  using Type = MlpBuffer<Network, N>;
};
template <class Network, int N>
struct StepBufferOf<Network, N, true> {
  using Type = WindowBuffer<Network, N, 1>;
};
template <class Network, int N>
using StepBuffer = typename StepBufferOf<Network, N>::Type;

template <class E, class Network, bool Recurrent = kIsRecurrent<Network>>
struct TileBufferOf {
  using Type = MlpBuffer<Network, E::kTileRows>;
};
template <class E, class Network>
struct TileBufferOf<E, Network, true> {
  using Type = WindowBuffer<Network, E::kTileRows / kWindowSteps<E>, kWindowSteps<E>>;
};
template <class E, class Network>
using TileBuffer = typename TileBufferOf<E, Network>::Type;

template <class Network>
constexpr int widest_recurrent() {
  if constexpr (kIsRecurrent<Network>) return Network::widest_recurrent();
  return 1;
}
template <class E, int Width, bool Windows = kHasWindows<E>>
struct TileGradientBufferOf {
  using Type = GradientBuffer<typename E::Scalar, E::kTileRows, Width>;
};
template <class E, int Width>
struct TileGradientBufferOf<E, Width, true> {
  static constexpr int kActor = widest_recurrent<typename E::Actor>();
  static constexpr int kCritic = widest_recurrent<CriticOf<E>>();
  using Type = WindowGradientBuffer<typename E::Scalar, E::kTileRows / kWindowSteps<E>,
                                    kWindowSteps<E>, Width, (kActor > kCritic ? kActor : kCritic)>;
};
template <class E, int Width>
using TileGradientBuffer = typename TileGradientBufferOf<E, Width>::Type;

// Further scratch memory of learning from windows: a base of the scratch memory, for it to take no
// space where there are none. The minibatch's windows; of a tile, where episodes begin, and states;
// the values of the states in which episodes were cut off, and hidden states that do not move on.
template <class E, int Truncations, bool Windows = kHasWindows<E>>
struct WindowScratch {};
template <class E, int Truncations>
struct WindowScratch<E, Truncations, true> {
  using T = typename E::Scalar;
  static constexpr int kDim = kStateDim<typename E::Actor> > kStateDim<CriticOf<E>>
                                  ? kStateDim<typename E::Actor>
                                  : kStateDim<CriticOf<E>>;
  std::uint32_t window[E::kBatchSize / kWindowSteps<E>];
  std::uint8_t begins[E::kTileRows];
  alignas(64) T tile_state[E::kTileRows / kWindowSteps<E> * kDim];
  T final_value[kEnvironmentCount<E> * Truncations];
  alignas(64) T next_state[kEnvironmentCount<E> * kDim];
};

// Set the rows of the minibatch's windows, whose numbers are window * environments + environment.
template <class E>
void rows_of_windows(Training<E>& training) {
  constexpr auto kSteps = static_cast<std::uint32_t>(kWindowSteps<E>);
  constexpr auto kCount = static_cast<std::uint32_t>(kEnvironmentCount<E>);
  auto& scratch = training.scratch;
  std::uint32_t* row = scratch.row;
  for (const std::uint32_t number : scratch.window) {
    const std::uint32_t first = number / kCount * kSteps * kCount + number % kCount;
    for (std::uint32_t step = 0; step < kSteps; step++) *row++ = first + step * kCount;
  }
}

// Set scratch.begins of the tile whose first row is row `first` of the minibatch.
template <class E>
void find_beginnings(Training<E>& training, int first) {
  if constexpr (kHasWindows<E>) {
    const auto& rollout = training.replay;
    auto& scratch = training.scratch;
    for (int i = 0; i < E::kTileRows; i++) {
      const auto before = scratch.row[first + i] - static_cast<std::uint32_t>(kEnvironmentCount<E>);
      scratch.begins[i] =
          i % kWindowSteps<E> != 0 && rollout.done[before] != rollout.kRunning ? 1 : 0;
    }
  }
}

// Compute output = network(seen) of a tile's rows, the hidden states beginning with those of its
// windows.
template <class Device, class E, class Network, class States, class Observations, class Output,
          class Buffer>
void forward_tile(Device device, Training<E>& training, const Network& network,
                  const States& states, [[maybe_unused]] int first, const Observations& seen,
                  Output& output, Buffer& buffer) {
  if constexpr (kIsRecurrent<Network>) {
    constexpr int kDim = kStateDim<Network>, kWindows = E::kTileRows / kWindowSteps<E>;
    using T = typename E::Scalar;
    auto& scratch = training.scratch;
    const std::uint32_t* number = scratch.window + first / kWindowSteps<E>;
    for (int window = 0; window < kWindows; window++) {
      const T* from = states.window + number[window] * kDim;
      for (int i = 0; i < kDim; i++) scratch.tile_state[window * kDim + i] = from[i];
    }
    forward_windows(device, network, seen, scratch.begins,
                    MatrixView<T, kWindows, kDim>{scratch.tile_state}, output, buffer);
  } else {
    forward(device, network, seen, output, buffer);
  }
}

// Add the tile's gradients of the parameters.
template <class Device, class E, class Network, class Observations, class Output, class Buffer>
void backward_tile(Device device, Training<E>& training, const Network& network,
                   const Observations& seen, const Output& output, Buffer& buffer,
                   typename E::Scalar* output_gradient, Network& gradient) {
  auto& scratch = training.scratch;
  if constexpr (kIsRecurrent<Network>) {
    backward_windows(device, network, seen, scratch.begins, output, buffer, output_gradient,
                     gradient, nullptr, nullptr, scratch.gradient_buffer);
  } else {
    backward(device, network, seen, output, buffer, output_gradient, gradient, nullptr,
             scratch.gradient_buffer);
  }
}

// Compute output = network(seen) of the environments' rows in the rollout's step `step`, whose
// states are kept where a window begins, and move on.
template <class Device, class E, class Network, class States, class Observations, class Output,
          class Buffer>
void forward_present(Device device, const Training<E>&, const Network& network,
                     [[maybe_unused]] States&& states, [[maybe_unused]] std::uint32_t step,
                     const Observations& seen, Output& output, Buffer& buffer) {
  if constexpr (kIsRecurrent<Network>) {
    constexpr int kDim = kStateDim<Network>, kCount = kEnvironmentCount<E> * kDim;
    constexpr auto kSteps = static_cast<std::uint32_t>(kWindowSteps<E>);
    if (step % kSteps == 0) {
      auto* window = states.window + step / kSteps * kCount;
      for (int i = 0; i < kCount; i++) window[i] = states.present[i];
    }
    forward_step(device, network, seen,
                 MatrixView<typename E::Scalar, kEnvironmentCount<E>, kDim>{states.present}, output,
                 buffer);
  } else {
    forward(device, network, seen, output, buffer);
  }
}

// Set the states of environments to zero whose episode ended with the rollout's step `step`.
template <int Dim, class States, class Rollout>
void end_states(States& states, const Rollout& rollout, int step) {
  for (int i = 0; i < Rollout::kEnvironments; i++) {
    if (rollout.done[step * Rollout::kEnvironments + i] == Rollout::kRunning) continue;
    for (int k = 0; k < Dim; k++) states.present[i * Dim + k] = 0;
  }
}

}  // namespace rlt
