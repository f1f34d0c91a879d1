// Prints an experiment's description as JSON on standard output: what the host tools need to know
// about a compiled experiment. Keys and meaning: docs/protocol.md, "Experiment description".
#include <cstdio>
#include <string>
#include <type_traits>

#include "describe_environment.h"
#include "rltools/devices/generic.h"
#include "rltools/rl/fingerprint.h"
#include "rltools/rl/training.h"
#include RLT_EXPERIMENT_HEADER

namespace {

using Experiment = rlt::RLT_EXPERIMENT;
using rlt::describe::Json;

// Return the text that name(write) writes letter by letter.
template <class Name>
std::string text_of(Name&& name) {
  std::string text;
  name([&](char c) { text += c; });
  return text;
}

template <class Network>
void describe_network(Json& json, const char* name) {
  json.object(name, [&] {
    json.list("dimensions", [&] {
      for (int i = 0; i < Network::Shape::kCount; i++) json.write(Network::Shape::kWidth[i]);
    });
    json.list("activations", [&] {
      for (int layer = 0; layer < Network::kLayerCount; layer++) {
        json.write(rlt::activation_name(Network::activation(layer)));
      }
    });
    if constexpr (rlt::kIsRecurrent<Network>) {
      json.list("layers", [&] {
        for (int layer = 0; layer < Network::kLayerCount; layer++) {
          json.write(Network::layer_name(layer));
        }
      });
    }
    json.pair("parameters", Network::kParameterCount);
  });
}

// Write the items of which the fingerprint is the hash.
void describe_learning(Json& json, rlt::Training<Experiment>& training) {
  json.object("learning", [&] {
    rlt::for_each_learning_item(training, [&](const rlt::ItemName& item, auto value) {
      json.pair(text_of([&](auto write) { rlt::write_item_name(item, write); }).c_str(), value);
    });
  });
}

// Write the algorithm's networks, sizes and metrics.
void describe_algorithm(Json& json, rlt::Training<Experiment>& training) {
  json.object("networks", [&] {
    rlt::for_each_network(training, [&](const char* name, const auto& network) {
      describe_network<std::decay_t<decltype(network)>>(json, name);
    });
  });
  json.pair("policy_state", rlt::kStateDim<rlt::PolicyNetwork<Experiment>>);
  json.pair("environments", rlt::kEnvironmentCount<Experiment>);
  json.object("sizes", [&] {
    rlt::for_each_size(training, [&](const char* name, int size) { json.pair(name, size); });
  });
  json.list("metrics", [&] {
    using Metrics = Experiment::Algorithm::Metrics;
    for (int i = 0; i < Metrics::kCount; i++) {
      json.object([&] {
        json.pair("name", Metrics::info(i).name);
        json.pair("description", Metrics::info(i).description);
      });
    }
  });
}

// Write the tensors of a checkpoint's payload.
void describe_state(Json& json, rlt::Training<Experiment>& training) {
  json.list("state", [&] {
    std::uint32_t offset = 0;
    rlt::for_each_state_tensor(training, [&](const rlt::TensorInfo& info, void*) {
      json.object([&] {
        json.pair("name", text_of([&](auto write) { rlt::write_full_name(info, write); }).c_str());
        json.pair("dtype", rlt::data_type_name(info.type));
        json.list("shape", [&] {
          json.write(info.rows);
          json.write(info.columns);
        });
        json.pair("offset", offset);
      });
      offset += info.bytes();
    });
  });
}

rlt::Learner<Experiment> learner;
rlt::Replay<Experiment> replay;
rlt::Scratch<Experiment> scratch;

}  // namespace

int main() {
  rlt::Training<Experiment> training{{}, learner, replay, scratch};
  using Environment = Experiment::Environment;
  const char* reason =
      rlt::kIsExternal<Environment> ? nullptr : rlt::unavailable_here<Environment>();
  if (reason != nullptr) {
    std::fprintf(stderr, "%s\n", reason);
    return 1;
  }
  Json json;
  json.object([&] {
    json.pair("name", Experiment::kName);
    json.pair("algorithm", Experiment::Algorithm::kName);
    json.pair("fingerprint", rlt::fingerprint(training));
    json.object("environment", [&] {
      rlt::describe::describe_environment<Environment>(json, Experiment::kEpisodeSteps);
    });
    describe_learning(json, training);
    describe_algorithm(json, training);
    describe_parameters(json, "hyperparameters", rlt::RunHyperparameters<Experiment>{});
    describe_state(json, training);
    json.object("bytes", [&] {
      json.pair("state", rlt::state_bytes(training));
      json.pair("learner", sizeof learner);
      json.pair("replay", sizeof replay);
      json.pair("scratch", sizeof scratch);
    });
  });
  std::puts(json.text().c_str());
  return 0;
}
