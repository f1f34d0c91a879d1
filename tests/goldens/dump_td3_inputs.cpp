// Writes what the core draws for the TD3 updates of tests/cpp/td3_golden_run.h, for generate.py: the initial weights,
// and each update's batch and noise. Usage: dump_td3_inputs CASE FILE
#include "rltools/devices/generic.h"
#include "td3_golden_run.h"

int main(int argument_count, char** arguments) {
  if (argument_count != 3) return 2;
  std::FILE* file = std::fopen(arguments[2], "wb");
  if (file == nullptr) return 1;
  training_run::Run<td3_golden::Experiment<double>> run;
  td3_golden::run(
      run, arguments[1],
      [&](const std::string& name, const golden::Array& values) {
        golden::write_array(file, name, values);
      },
      [](int, const rlt::StepReport&) {});
  return std::fclose(file) == 0 ? 0 : 1;
}
