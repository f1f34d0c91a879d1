// The description of an experiment by its library, for `rlt check`: hyperparameters, networks, and
// the memory that it would occupy with hidden layers of other widths. These are types alone, of
// which nothing is compiled but their sizes.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "describe.h"
#include "rltools/nn/sequential.h"
#include "rltools/rl/policy_of_training.h"
#include "rltools/rl/training.h"

namespace rlt::describe {

template <class Network, int Width>
struct Widened {
  template <std::size_t... Hidden>
  static WithHiddenWidths<Network, (static_cast<void>(Hidden), Width)...> make(
      std::index_sequence<Hidden...>);
  using Type = decltype(make(std::make_index_sequence<Network::Shape::kCount - 2>{}));
};

template <class Layer, int Width>
struct WideLayer;
template <int Own, Activation A, int Width>
struct WideLayer<Dense<Own, A>, Width> {
  using Type = Dense<Width, A>;
};
template <int Own, int Width>
struct WideLayer<Gru<Own>, Width> {
  using Type = Gru<Width>;
};
template <class T, int In, class... Layers, int Width>
struct Widened<Sequential<T, In, Layers...>, Width> {
  static constexpr std::size_t kLast = sizeof...(Layers) - 1;
  template <std::size_t... Index>
  static Sequential<
      T, In, std::conditional_t<Index == kLast, Layers, typename WideLayer<Layers, Width>::Type>...>
      make(std::index_sequence<Index...>);
  using Type = decltype(make(std::make_index_sequence<sizeof...(Layers)>{}));
};

// The experiment E with so many units in each hidden layer; not every algorithm has both networks.
template <class E, int Width, class = void>
struct WithActor : E {};
template <class E, int Width>
struct WithActor<E, Width, std::void_t<typename E::Actor>> : E {
  using Actor = typename Widened<typename E::Actor, Width>::Type;
};
template <class E, int Width, class = void>
struct WithCritic : E {};
template <class E, int Width>
struct WithCritic<E, Width, std::void_t<typename E::Critic>> : E {
  using Critic = typename Widened<typename E::Critic, Width>::Type;
};
template <class E, int Width>
using WithWidth = WithCritic<WithActor<E, Width>, Width>;

template <class E>
void describe_bytes(Json& json, int width) {
  json.object([&] {
    json.pair("width", width);
    json.pair("learner", sizeof(Learner<E>));
    json.pair("replay", sizeof(Replay<E>));
    json.pair("scratch", sizeof(Scratch<E>));
    json.pair("policy", kPolicyImageBytes<E>);
  });
}

template <class E, int... Widths>
void describe_widths(Json& json, std::integer_sequence<int, Widths...>) {
  (describe_bytes<WithWidth<E, Widths>>(json, Widths), ...);
}

// Write its pairs, in an object that the caller has opened. A width of 0 stands for the
// experiment's own.
template <class E>
void describe_experiment(Json& json) {
  json.pair("name", E::kName);
  json.pair("algorithm", E::Algorithm::kName);
  json.list("hidden", [&] {
    using Shape = typename PolicyNetwork<E>::Shape;
    for (int i = 1; i + 1 < Shape::kCount; i++) json.write(Shape::kWidth[i]);
  });
  describe_parameters(json, "hyperparameters", RunHyperparameters<E>{});
  json.list("bytes", [&] {
    describe_bytes<E>(json, 0);
    describe_widths<E>(json, std::integer_sequence<int, 16, 32, 48, 64, 80, 96, 128, 192, 256>{});
  });
}

}  // namespace rlt::describe
