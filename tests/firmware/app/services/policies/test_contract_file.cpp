// The file of a contract whose actions are choices, in whatever pieces it is read. Those of other
// contracts: test_policy_service.cpp.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "app/services/policies/contract_file.h"

using namespace rlt;

namespace {

struct Machine {
  static constexpr std::uint32_t kStepInterval_us = 2000;
  static constexpr int kObservationDim = 1, kActionDim = 3;
  static constexpr Channel kObservations[] = {{"angle", "rad", -1.0f, 1.0f}};
  static constexpr Channel kActions[] = {
      choice("gear", "low|middle|high"), {"torque", "N*m", -1.0f, 1.0f}, choice("horn", "off|on")};
};

using Bytes = std::vector<std::uint8_t>;

Bytes content(std::uint32_t piece) {
  const ContractFile file(policy_contract<Machine>());
  Bytes bytes(file.size());
  for (std::uint32_t offset = 0; offset < file.size(); offset += piece) {
    const std::uint32_t left = file.size() - offset;
    file.read(offset, bytes.data() + offset, left < piece ? left : piece);
  }
  return bytes;
}

}  // namespace

TEST_CASE("channels, then the names of choices, then the rate: with the contract's checksum") {
  const Bytes all = content(1000);
  REQUIRE(all.size() == 4 * 48 + 5 * 24 + 8);
  CHECK(crc32(all.data(), all.size() - 4) == contract_crc32(policy_contract<Machine>()));
  CHECK(std::string(reinterpret_cast<const char*>(&all[48])) == "gear");
  CHECK(std::string(reinterpret_cast<const char*>(&all[48 + 24])) == "choice");
  CHECK(std::string(reinterpret_cast<const char*>(&all[2 * 48 + 24])) == "N*m");
  const char* const names[] = {"low", "middle", "high", "off", "on"};
  for (int i = 0; i < 5; i++) {
    CHECK(std::string(reinterpret_cast<const char*>(&all[4 * 48 + i * 24])) == names[i]);
  }
  CHECK(Bytes(all.end() - 8, all.end()) == Bytes{0xd0, 0x07, 0, 0, 1, 0, 3, 0});
  for (const std::uint32_t piece : {1u, 7u, 24u, 31u, 48u, 100u}) CHECK(content(piece) == all);
}
