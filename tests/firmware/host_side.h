// The host's end of the link to a board that is memory: messages are made and read with MAVLink's
// own generated code, not with the application's.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "app/link/mavlink_protocol.h"
#include "host_messages.h"

namespace board_in_memory {

constexpr rlt::link::Address kSelf{3,
                                   77};  // no real board's: a node has the address that it is given
constexpr rlt::link::Address kHost{255, 190};

class HostSide {
 public:
  using Message = mavlink_message_t;

  rlt::link::Address host = kHost;  // which sends
  std::vector<Message> received;    // by the host, since the last exchange

  template <class Content>
  void put(Encode<Content> encode, const Content& content) {
    const Bytes frame = frame_of(host, encode, content);
    to_board.insert(to_board.end(), frame.begin(), frame.end());
  }

  // All messages of a kind among those received.
  template <class Content>
  std::vector<Content> all(std::uint32_t id, void (*decode)(const Message*, Content*)) const {
    std::vector<Content> contents;
    for (const Message& message : received) {
      if (message.msgid != id) continue;
      contents.emplace_back();
      decode(&message, &contents.back());
    }
    return contents;
  }

  std::vector<std::string> texts() const {
    std::vector<std::string> result;
    for (const auto& text : all(MAVLINK_MSG_ID_STATUSTEXT, mavlink_msg_statustext_decode)) {
      result.emplace_back(text.text, strnlen(text.text, sizeof(text.text)));
    }
    return result;
  }

 protected:
  // Takes what the board has sent.
  void parse() {
    for (const std::uint8_t byte : from_board) {
      Message message;
      if (mavlink_frame_char_buffer(&partial_, &status_, byte, &message, nullptr) ==
          MAVLINK_FRAMING_OK) {
        received.push_back(message);
        CHECK(message.sysid == kSelf.system);
        CHECK(message.compid == kSelf.component);
      }
    }
    from_board.clear();
  }

 private:
  Message partial_{};
  mavlink_status_t status_{};
};

}  // namespace board_in_memory
