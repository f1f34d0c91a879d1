// Prints an experiment's description as JSON on standard output: what the host tools need to know
// about a compiled experiment. Keys and meaning: docs/protocol.md, "Experiment description".
#include <cinttypes>
#include <cstdio>
#include <string>
#include <type_traits>

#include "rltools/devices/generic.h"
#include "rltools/rl/fingerprint.h"
#include "rltools/rl/training.h"
#include RLT_EXPERIMENT_HEADER

namespace {

using Experiment = rlt::RLT_EXPERIMENT;
using Hyperparameters = rlt::RunHyperparameters<Experiment>;

const char* comma(bool is_first) { return is_first ? "" : ","; }

template <class Network>
void print_network(const char* name, bool is_first) {
  std::printf("%s\n    \"%s\": {\"dimensions\": [", comma(is_first), name);
  for (int i = 0; i < Network::Shape::kCount; i++) {
    std::printf("%s%d", i ? ", " : "", Network::Shape::kWidth[i]);
  }
  std::printf("], \"activations\": [");
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    std::printf("%s\"%s\"", layer ? ", " : "", rlt::activation_name(Network::activation(layer)));
  }
  std::printf("], \"parameters\": %d}", Network::kParameterCount);
}

void print_channels(const char* name, const rlt::Channel* channels, int count) {
  std::printf("    \"%s\": [", name);
  for (int i = 0; i < count; i++) {
    std::printf("%s{\"name\": \"%s\", \"unit\": \"%s\", \"minimum\": %.9g, \"maximum\": %.9g}",
                i ? ", " : "", channels[i].name, channels[i].unit,
                static_cast<double>(channels[i].minimum), static_cast<double>(channels[i].maximum));
  }
  std::printf("]");
}

void print_value(const char* text) { std::printf("\"%s\"", text); }
void print_value(std::uint32_t number) { std::printf("%" PRIu32, number); }
void print_value(double number) { std::printf("%.17g", number); }

// What the fingerprint is the hash of.
void print_learning(rlt::Training<Experiment>& training) {
  std::printf("  \"learning\": {");
  const char* separator = "\n    ";
  rlt::for_each_learning_item(training, [&](const rlt::ItemName& item, auto value) {
    std::string name;
    rlt::write_item_name(item, [&](char c) { name += c; });
    std::printf("%s\"%s\": ", separator, name.c_str());
    print_value(value);
    separator = ",\n    ";
  });
  std::printf("\n  },\n");
}

// What the algorithm says of itself: networks, sizes, metrics.
void print_algorithm(rlt::Training<Experiment>& training) {
  bool is_first = true;
  std::printf("  \"networks\": {");
  rlt::for_each_network(training, [&](const char* name, const auto& network) {
    print_network<std::decay_t<decltype(network)>>(name, is_first);
    is_first = false;
  });
  std::printf("\n  },\n  \"environments\": %d,\n  \"sizes\": {",
              rlt::kEnvironmentCount<Experiment>);
  is_first = true;
  rlt::for_each_size(training, [&](const char* name, int size) {
    std::printf("%s\"%s\": %d", is_first ? "" : ", ", name, size);
    is_first = false;
  });
  std::printf("},\n  \"metrics\": [");
  using Metrics = Experiment::Algorithm::Metrics;
  for (int i = 0; i < Metrics::kCount; i++) {
    std::printf("%s\n    {\"name\": \"%s\", \"description\": \"%s\"}", comma(i == 0),
                Metrics::info(i).name, Metrics::info(i).description);
  }
  std::printf("\n  ],\n");
}

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

void print_contract() {
  const char* name = ContractName<Experiment::Environment>::kValue;
  if (name == nullptr) {
    std::printf("    \"contract\": null,\n");
  } else {
    std::printf("    \"contract\": \"%s\",\n", name);
  }
}

void print_solved_return() {
  constexpr double kReturn = Experiment::Environment::kSolvedReturn;
  std::printf("    \"solved_return\": ");
  if (rlt::is_finite(kReturn)) {
    std::printf("%.9g,\n", kReturn);
  } else {
    std::printf("null,\n");
  }
}

// The parameter's default in this experiment, which may differ from the algorithm's.
double default_of(const Hyperparameters& hyperparameters, int index) {
  const std::uint32_t bits = hyperparameters.get_bits(index);
  if (Hyperparameters::info(index).type == rlt::DataType::u32) return bits;
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return static_cast<double>(value);
}

rlt::Learner<Experiment> learner;
rlt::Replay<Experiment> replay;
rlt::Scratch<Experiment> scratch;

}  // namespace

int main() {
  rlt::Training<Experiment> training{{}, learner, replay, scratch};
  using Environment = Experiment::Environment;
  const char* reason =
      rlt::kIsElsewhere<Environment> ? nullptr : rlt::unavailable_here<Environment>();
  if (reason != nullptr) {
    std::fprintf(stderr, "%s\n", reason);
    return 1;
  }
  std::printf("{\n  \"name\": \"%s\",\n  \"algorithm\": \"%s\",\n", Experiment::kName,
              Experiment::Algorithm::kName);
  std::printf("  \"fingerprint\": %" PRIu32 ",\n", rlt::fingerprint(training));
  std::printf("  \"environment\": {\n    \"name\": \"%s\",\n    \"step_interval_us\": %" PRIu32
              ",\n    \"episode_steps\": %d,\n",
              Environment::kName, Environment::kStepInterval_us, Experiment::kEpisodeSteps);
  print_contract();
  print_solved_return();
  print_channels("observations", Environment::kObservations, Environment::kObservationDim);
  std::printf(",\n");
  print_channels("actions", Environment::kActions, Environment::kActionDim);
  std::printf("\n  },\n");
  print_learning(training);
  print_algorithm(training);
  std::printf("  \"hyperparameters\": [\n");
  const Hyperparameters hyperparameters{};
  for (int i = 0; i < Hyperparameters::kCount; i++) {
    const rlt::ParameterInfo& info = Hyperparameters::info(i);
    std::printf(
        "    {\"name\": \"%s\", \"type\": \"%s\", \"default\": %.9g, \"minimum\": %.17g, "
        "\"maximum\": %.17g, \"unit\": \"%s\", \"description\": \"%s\"}%s\n",
        info.name, rlt::data_type_name(info.type), default_of(hyperparameters, i), info.minimum,
        info.maximum, info.unit, info.description, i + 1 < Hyperparameters::kCount ? "," : "");
  }
  std::printf("  ],\n  \"state\": [\n");
  std::uint32_t offset = 0;
  const std::uint32_t total = rlt::state_bytes(training);
  rlt::for_each_state_tensor(training, [&](const rlt::TensorInfo& info, void*) {
    std::string name;
    rlt::write_full_name(info, [&](char c) { name += c; });
    std::printf("    {\"name\": \"%s\", \"dtype\": \"%s\", \"shape\": [%" PRIu32 ", %" PRIu32
                "], \"offset\": %" PRIu32 "}%s\n",
                name.c_str(), rlt::data_type_name(info.type), info.rows, info.columns, offset,
                offset + info.bytes() < total ? "," : "");
    offset += info.bytes();
  });
  std::printf("  ],\n  \"bytes\": {\"state\": %" PRIu32
              ", \"learner\": %zu, \"replay\": %zu, "
              "\"scratch\": %zu}\n}\n",
              total, sizeof learner, sizeof replay, sizeof scratch);
  return 0;
}
