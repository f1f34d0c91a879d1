// What the tests of the train application expect of a run's end.
#pragma once

#include <string>

#include "scripted_board.h"

namespace scripted {

std::string hash_of(const std::uint8_t (&sha256)[32]);

// What a run without any application gives.
std::string expected_sha256(std::uint32_t steps);

// What a board has sent.
mavlink_rlt_result_t result_in(const HostSide& board);
std::vector<mavlink_rlt_progress_t> progress_in(const HostSide& board);
std::vector<mavlink_rlt_evaluation_t> evaluations_in(const HostSide& board);

}  // namespace scripted
