// Writes what the core draws for the updates of {td3,sac,ppo}_golden_run.h, for
// generate.py, generate_sac.py and generate_ppo.py: the initial weights, and each update's batch
// and noise, or the rollout and the order of its rows. Usage: dump_inputs ALGORITHM CASE FILE
#include <cstring>

#include "ppo_golden_run.h"
#include "rltools/devices/generic.h"
#include "sac_golden_run.h"
#include "td3_golden_run.h"

int main(int argument_count, char** arguments) {
  if (argument_count != 4) return 2;
  std::FILE* file = std::fopen(arguments[3], "wb");
  if (file == nullptr) return 1;
  const auto put = [&](const std::string& name, const golden::Array& values) {
    golden::write_array(file, name, values);
  };
  const auto after_update = [](int, const auto&) {};
  if (std::strcmp(arguments[1], "td3") == 0) {
    training_run::Run<td3_golden::Experiment<double>> run;
    td3_golden::run(run, arguments[2], put, after_update);
  } else if (std::strcmp(arguments[1], "sac") == 0) {
    training_run::Run<sac_golden::Experiment<double>> run;
    sac_golden::run(run, arguments[2], put, after_update);
  } else if (std::strcmp(arguments[1], "ppo") == 0) {
    training_run::Run<ppo_golden::Experiment<double>> run;
    ppo_golden::run(run, arguments[2], put, after_update);
  } else {
    return 2;
  }
  return std::fclose(file) == 0 ? 0 : 1;
}
