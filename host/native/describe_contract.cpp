// Prints a contract as JSON on standard output: its name, channels and rate.
// host/rltools_host/build/experiments.py reads it.
#include <cstdio>

#include "describe.h"
#include RLT_CONTRACT_HEADER

int main() {
  using Contract = rlt::contracts::RLT_CONTRACT;
  rlt::describe::Json json;
  json.object([&] {
    json.pair("name", Contract::kContractName);
    json.pair("step_interval_us", Contract::kStepInterval_us);
    rlt::describe::describe_channels(json, "observations", Contract::kObservations,
                                     Contract::kObservationDim);
    rlt::describe::describe_channels(json, "actions", Contract::kActions, Contract::kActionDim);
    rlt::describe::describe_safe_action<Contract>(json);
  });
  std::puts(json.text().c_str());
  return 0;
}
