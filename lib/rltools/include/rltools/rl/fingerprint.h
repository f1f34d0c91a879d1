// Everything that learning depends on, item by item and by name, and the fingerprint, which is the
// hash over the items: a checkpoint, a board and a host agree where their fingerprints do, and
// where they differ the items say in what. The values of hyperparameters are not among them, as
// they are set for each run, nor is what changes no bit, as the tile.
#pragma once

#include <type_traits>

#include "rltools/rl/training.h"

namespace rlt {

// `group`, `group[index]`, `group[index].field` or `group.field[element]`.
struct ItemName {
  const char* group;
  int index = -1;
  const char* field = nullptr;
  int element = -1;
};

namespace detail {

template <class Put>
void write_index(int index, Put&& put) {
  put('[');
  for (int divisor = 1000000000; divisor > 0; divisor /= 10) {
    if (index >= divisor || divisor == 1) put(static_cast<char>('0' + index / divisor % 10));
  }
  put(']');
}

// 32-bit FNV-1a.
struct Fnv1a {
  std::uint32_t hash = 2166136261u;

  void add_byte(std::uint32_t byte) { hash = (hash ^ (byte & 0xffu)) * 16777619u; }
  void add(const char* text) {
    for (; *text != '\0'; text++) add_byte(static_cast<unsigned char>(*text));
    add_byte(0);
  }
  void add(std::uint32_t word) {
    for (int shift = 0; shift < 32; shift += 8) add_byte(word >> shift);
  }
  void add(double number) {
    std::uint64_t bits;
    __builtin_memcpy(&bits, &number, sizeof bits);
    add(static_cast<std::uint32_t>(bits));
    add(static_cast<std::uint32_t>(bits >> 32));
  }
};

// Return a hash of the names, types and shapes of the state's tensors.
template <class E>
std::uint32_t state_layout_hash(Training<E>& training) {
  Fnv1a hash;
  for_each_state_tensor(training, [&](const TensorInfo& info, void*) {
    write_full_name(info, [&](char c) { hash.add_byte(static_cast<unsigned char>(c)); });
    hash.add(static_cast<std::uint32_t>(info.type));
    hash.add(info.rows);
    hash.add(info.columns);
  });
  return hash.hash;
}

// Purpose of the probe's random numbers, far from those of core/random.h.
constexpr Purpose kBehaviorProbe = static_cast<Purpose>(0x50524f42u);

template <class T>
void add_bits(Fnv1a& hash, T value) {
  unsigned char bytes[sizeof(T)];
  __builtin_memcpy(bytes, &value, sizeof(T));
  for (const unsigned char byte : bytes) hash.add_byte(byte);
}

// Return the number of probes of the environment.
template <class Environment>
constexpr int probes() {
  if constexpr (kHasSettings<Environment>) return Environment::kProbes;
  return 4;
}

// Return the environment with the settings of a probe. They are not the experiment's: those are
// values of hyperparameters, which are set for each run and recorded with it.
template <class Environment>
Environment probed([[maybe_unused]] int probe) {
  Environment environment{};
  if constexpr (kHasSettings<Environment>) {
    environment.settings = Environment::probe_settings(probe);
  }
  return environment;
}

// Return a hash of the environment's behavior in a few steps of each probe with random actions:
// every edit of an equation that matters there is another hash. Where it has settings, an episode
// that ends is followed by another one, so that a probe with narrow limits shows many beginnings.
template <class Environment>
std::uint32_t behavior_hash() {
  using T = typename Environment::Scalar;
  constexpr int kProbes = probes<Environment>();
  constexpr std::uint32_t kSteps = 16;
  constexpr bool kHasEpisodes = kHasSettings<Environment>;
  const Generic device{};
  typename Environment::Parameters parameters;
  typename Environment::State state;
  Fnv1a hash;
  for (int probe = 0; probe < kProbes; probe++) {
    const Environment environment = probed<Environment>(probe);
    const auto begin = [&](RandomStream random) {
      draw_parameters(device, environment, parameters, random);
      reset(device, environment, parameters, state, random);
    };
    const auto id = static_cast<std::uint32_t>(probe);
    begin({0, kBehaviorProbe, id});
    bool terminated = false, truncated = false;
    for (std::uint32_t i = 0; i < kSteps && !terminated && !truncated; i++) {
      const RandomStream random{0, kBehaviorProbe, id, i + 1};
      T observation[kCriticObservationDim<Environment>], action[Environment::kActionDim];
      observe(device, environment, parameters, state, observation, random);
      if constexpr (kIsDiscrete<Environment>) {
        choose_uniformly<Environment>(random, observation, action);
      } else {
        fill_uniform(device, random, action, Environment::kActionDim, T(-1), T(1));
      }
      const auto result = step(device, environment, parameters, state, action, random);
      for (const T value : observation) add_bits(hash, value);
      add_bits(hash, result.reward);
      terminated = result.terminated;
      truncated = result.truncated;
      if (kHasEpisodes && (terminated || truncated)) {
        hash.add_byte(terminated);
        begin({0, kBehaviorProbe, id, kSteps + i + 1});
        terminated = truncated = false;
      }
    }
    hash.add_byte(terminated);
  }
  return hash.hash;
}

template <class Visitor>
void visit_channels(const char* group, const Channel* channels, int count, Visitor&& visit) {
  for (int i = 0; i < count; i++) {
    visit(ItemName{group, i, "name"}, channels[i].name);
    visit(ItemName{group, i, "unit"}, channels[i].unit);
    visit(ItemName{group, i, "minimum"}, static_cast<double>(channels[i].minimum));
    visit(ItemName{group, i, "maximum"}, static_cast<double>(channels[i].maximum));
  }
}

// Return an integer as it is, a floating-point number as a double.
template <class T>
constexpr auto item_value(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(value);
  } else {
    return static_cast<std::uint32_t>(value);
  }
}

// Visit the constants: the nominal ones; where episodes have their own, those of one, by the first
// probe's settings.
template <class Environment, class Visitor>
void visit_constants(const char* group, Visitor&& visit) {
  typename Environment::Parameters parameters;
  draw_parameters(Generic{}, probed<Environment>(0), parameters, {0, kBehaviorProbe, 0});
  parameters.for_each_field([&](const char* name, const auto& constant) {
    using Constant = std::remove_reference_t<decltype(constant)>;
    if constexpr (std::is_array_v<Constant>) {
      for (int i = 0; i < static_cast<int>(std::extent_v<Constant>); i++) {
        visit(ItemName{group, -1, name, i}, item_value(constant[i]));
      }
    } else {
      visit(ItemName{group, -1, name}, item_value(constant));
    }
  });
}

template <class Network, class Visitor>
void visit_network(const char* name, Visitor&& visit) {
  for (int i = 0; i <= Network::kLayerCount; i++) {
    visit(ItemName{name, -1, "widths", i}, static_cast<std::uint32_t>(Network::Shape::kWidth[i]));
  }
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    visit(ItemName{name, -1, "activations", layer}, activation_name(Network::activation(layer)));
  }
  if constexpr (kIsRecurrent<Network>) {
    for (int layer = 0; layer < Network::kLayerCount; layer++) {
      visit(ItemName{name, -1, "layers", layer}, Network::layer_name(layer));
    }
  }
}

}  // namespace detail

// Call put(character) for each character of the name.
template <class Put>
void write_item_name(const ItemName& name, Put&& put) {
  for (const char* c = name.group; *c != '\0'; c++) put(*c);
  if (name.index >= 0) detail::write_index(name.index, put);
  if (name.field == nullptr) return;
  put('.');
  for (const char* c = name.field; *c != '\0'; c++) put(*c);
  if (name.element >= 0) detail::write_index(name.element, put);
}

// Visit every item: visit(const ItemName&, value), where a value is a text, a std::uint32_t or a
// double.
template <class E, class Visitor>
void for_each_learning_item(Training<E>& training, Visitor&& visit) {
  using Environment = typename E::Environment;
  using Hyperparameters = RunHyperparameters<E>;
  visit(ItemName{"experiment"}, E::kName);
  visit(ItemName{"algorithm"}, E::Algorithm::kName);
  visit(ItemName{"environment"}, Environment::kName);
  visit(ItemName{"environment.step_interval_us"}, Environment::kStepInterval_us);
  detail::visit_constants<Environment>("environment", visit);
  if constexpr (kHasSettings<Environment>) {
    visit(ItemName{"environment.probes"}, static_cast<std::uint32_t>(Environment::kProbes));
  }
  if constexpr (!kIsExternal<Environment>) {  // there only who plays the episodes knows it
    visit(ItemName{"environment.behavior"}, detail::behavior_hash<Environment>());
  }
  detail::visit_channels("observations", Environment::kObservations, Environment::kObservationDim,
                         visit);
  detail::visit_channels("actions", Environment::kActions, Environment::kActionDim, visit);
  if (Environment::kPrivilegedDim > 0) {
    visit(ItemName{"privileged"}, static_cast<std::uint32_t>(Environment::kPrivilegedDim));
  }
  if constexpr (kMirrorsLearned<E> > 0) {
    visit(ItemName{"mirrors"}, Symmetry<E>::hash());
  }
  if (kIsNormalized<E>) visit(ItemName{"normalized"}, std::uint32_t{1});
  if (kAveragedUpdates<E> != 0) {
    visit(ItemName{"averaged_updates"}, static_cast<std::uint32_t>(kAveragedUpdates<E>));
  }
  visit(ItemName{"episode_steps"}, static_cast<std::uint32_t>(E::kEpisodeSteps));
  if (kEnvironmentCount<E> > 1) {
    visit(ItemName{"environments"}, static_cast<std::uint32_t>(kEnvironmentCount<E>));
  }
  for_each_size(training, [&](const char* name, int size) {
    visit(ItemName{name}, static_cast<std::uint32_t>(size));
  });
  for_each_network(training, [&](const char* name, const auto& network) {
    detail::visit_network<std::decay_t<decltype(network)>>(name, visit);
  });
  for (int i = 0; i < Hyperparameters::kCount; i++) {
    const ParameterInfo& info = Hyperparameters::info(i);
    visit(ItemName{"hyperparameters", i, "name"}, info.name);
    visit(ItemName{"hyperparameters", i, "type"}, data_type_name(info.type));
  }
  visit(ItemName{"state_layout"}, detail::state_layout_hash(training));
}

// Return the fingerprint: 32-bit FNV-1a over the items' names and values.
template <class E>
std::uint32_t fingerprint(Training<E>& training) {
  detail::Fnv1a hash;
  if constexpr (kKeepsContracts<E>) {
    for_each_learning_item(training, [&](const ItemName& name, auto value) {
      write_item_name(name, [&](char c) { hash.add_byte(static_cast<unsigned char>(c)); });
      hash.add(value);
    });
  }
  return hash.hash;
}

}  // namespace rlt
