// Writes what the core draws for the updates of golden_runs.h, for generate*.py: the initial
// weights, and each update's batch and noise, or the rollout and the order of its rows. Usage:
// dump_inputs ALGORITHM CASE FILE
#include "golden_runs.h"
#include "rltools/devices/generic.h"

namespace {

template <class Updates>
int dump(const std::string& algorithm, const char* name, const char* path) {
  if (algorithm != Updates::kName) return 0;
  std::FILE* file = std::fopen(path, "wb");
  if (file == nullptr) return 1;
  training_run::Run<typename Updates::Experiment> run;
  golden::run(
      Updates{}, run, name,
      [&](const std::string& array, const golden::Array& values) {
        golden::write_array(file, array, values);
      },
      [](int, const auto&) {});
  return std::fclose(file) == 0 ? 0 : 1;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 4) return 2;
  return dump<golden::Td3Updates>(arguments[1], arguments[2], arguments[3]) +
         dump<golden::SacUpdates>(arguments[1], arguments[2], arguments[3]) +
         dump<golden::XqcUpdates>(arguments[1], arguments[2], arguments[3]) +
         dump<golden::PpoUpdates>(arguments[1], arguments[2], arguments[3]) +
         dump<golden::ChoicesPpoUpdates>(arguments[1], arguments[2], arguments[3]) +
         dump<golden::DqnUpdates>(arguments[1], arguments[2], arguments[3]);
}
