// Test: scripted_board
// Hyperparameters over the link (docs/protocol.md, "Messages"), on a board that is memory.
#include "scripted_board.h"

using namespace scripted;

TEST_CASE("hyperparameters: listed, read by name and by index") {
  Board board;
  mavlink_param_request_list_t everything{};
  everything.target_system = kSelf.system;
  board.exchange(mavlink_msg_param_request_list_encode, everything);
  const auto values = board.all(MAVLINK_MSG_ID_PARAM_VALUE, mavlink_msg_param_value_decode);
  REQUIRE(values.size() == static_cast<std::size_t>(Td3Hyperparameters::kCount));
  for (int i = 0; i < Td3Hyperparameters::kCount; i++) {
    const auto& value = values[static_cast<std::size_t>(i)];
    const ParameterInfo& info = Td3Hyperparameters::info(i);
    CHECK(std::string(value.param_id, strnlen(value.param_id, 16)) ==
          std::string(info.name).substr(0, 16));
    CHECK(value.param_index == i);
    CHECK(value.param_count == Td3Hyperparameters::kCount);
    CHECK(value.param_type ==
          (info.type == DataType::u32 ? MAV_PARAM_TYPE_UINT32 : MAV_PARAM_TYPE_REAL32));
    std::uint32_t bits;
    std::memcpy(&bits, &value.param_value, 4);
    CHECK(bits == board.run.training.hyperparameters.get_bits(i));
  }

  mavlink_param_request_read_t by_name{};
  by_name.param_index = -1;
  by_name.target_system = kSelf.system;
  std::memcpy(by_name.param_id, "gamma", 5);
  board.exchange(mavlink_msg_param_request_read_encode, by_name);
  auto answers = board.all(MAVLINK_MSG_ID_PARAM_VALUE, mavlink_msg_param_value_decode);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].param_value == 0.99f);

  mavlink_param_request_read_t by_index{};
  by_index.param_index = 1;
  by_index.target_system = kSelf.system;
  board.exchange(mavlink_msg_param_request_read_encode, by_index);
  answers = board.all(MAVLINK_MSG_ID_PARAM_VALUE, mavlink_msg_param_value_decode);
  REQUIRE(answers.size() == 1);
  CHECK(std::string(answers[0].param_id) == "steps");

  by_index.param_index = Td3Hyperparameters::kCount;
  board.exchange(mavlink_msg_param_request_read_encode, by_index);
  CHECK(board.all(MAVLINK_MSG_ID_PARAM_VALUE, mavlink_msg_param_value_decode).empty());
  CHECK(board.texts() == std::vector<std::string>{"there is no such hyperparameter"});
}

TEST_CASE("hyperparameters: every bit of an integer arrives, also those of a signaling NaN") {
  Board board;
  for (const std::uint32_t seed : {0u, 1u, 0x7fa00001u, 0xffa00001u, 0x80000000u, 0xffffffffu}) {
    board.set("seed", seed);
    CHECK(board.run.training.hyperparameters.seed == seed);
  }
}

TEST_CASE("hyperparameters: what is not allowed is refused with the old value and the reason") {
  Board board;
  const auto refused = [&](const char* name, std::uint32_t bits, std::uint8_t type,
                           const char* reason) {
    const auto before = board.run.training.hyperparameters;
    const auto answer = board.set_bits(name, bits, type);
    CHECK(board.texts() == std::vector<std::string>{reason});
    for (int i = 0; i < Td3Hyperparameters::kCount; i++) {
      CHECK(board.run.training.hyperparameters.get_bits(i) == before.get_bits(i));
      if (std::string(name) != Td3Hyperparameters::info(i).name) continue;
      std::uint32_t answered;
      std::memcpy(&answered, &answer.param_value, 4);
      CHECK(answered == before.get_bits(i));
    }
  };
  const char* bounds = "hyperparameter refused: out of bounds";
  refused("steps", 0, MAV_PARAM_TYPE_UINT32, bounds);
  refused("gamma", 0x3f800001u, MAV_PARAM_TYPE_REAL32, bounds);          // 1 + epsilon
  refused("gamma", 0x7fc00000u, MAV_PARAM_TYPE_REAL32, bounds);          // NaN
  refused("learning_rate", 0x7f800000u, MAV_PARAM_TYPE_REAL32, bounds);  // infinity
  refused("gamma", 0, MAV_PARAM_TYPE_UINT32, "hyperparameter refused: it is of another type");
  board.set_short_run(1000);
  CHECK(board.command(MAV_CMD_RLT_START) == MAV_RESULT_ACCEPTED);
  refused("steps", 5, MAV_PARAM_TYPE_UINT32, "hyperparameter refused: pause training first");
  // A repeated request for the value that holds is no error.
  board.set_bits("steps", 1000, MAV_PARAM_TYPE_UINT32);
  CHECK(board.texts().empty());
}
