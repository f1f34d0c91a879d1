// The module's commands, in the shell's task: with a deployment that Run() leaves alone meanwhile.
// Each prints its outcome, and returns PX4_OK or PX4_ERROR.
#pragma once

#include "policy_files.h"
#include "policy_folder.h"
#include "policy_mode.h"
#include "rltools/this_processor.h"

namespace rlt::px4 {

using Mode = PolicyMode<ThisProcessor>;

int try_candidate(Mode& mode, PolicyFolder& folder, int trial_s);
int confirm(Mode& mode, PolicyFolder& folder);
// Roll back out of a trial, or to the policy before.
int roll_back(Mode& mode, PolicyFolder& folder);
// Return "offset X Y Z" as EntryOffset packs it; 0 where that is none, or further than the policy
// may be handed a target.
int packed_offset(int argc, char* argv[], const EntryEnvelope& envelope);
void print_envelope(Mode& mode);
void print_verdict(const char* name, const FileVerdict& verdict);

}  // namespace rlt::px4
