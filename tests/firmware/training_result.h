// What the tests of the train application expect of a run's end.
#pragma once

#include <string>

#include "scripted_board.h"

namespace scripted {

std::string hash_of(const std::uint8_t (&sha256)[32]);

// What a run without any application gives.
std::string expected_sha256(std::uint32_t steps);

mavlink_rlt_result_t result_in(const Board& board);

}  // namespace scripted
