// Sends MAVLink 2 messages over a transport, each in one write.
#pragma once

#include "app/link/mavlink_protocol.h"
#include "app/link/transport.h"

namespace rlt::link {

// Copy a text into a message's field of zeros. A text as long as the field, or longer, has no
// terminating zero there.
template <std::size_t Size>
void copy_text(char (&field)[Size], const char* text) {
  for (std::size_t i = 0; i < Size && text[i] != '\0'; i++) field[i] = text[i];
}

class MessageSender {
 public:
  MessageSender(Transport transport, Address self) : transport_(transport), self_(self) {}
  MessageSender(const MessageSender&) = delete;
  MessageSender& operator=(const MessageSender&) = delete;

  // Send a message, for example send(mavlink_msg_heartbeat_encode_status, heartbeat).
  template <class Content>
  void send(std::uint16_t (*encode)(std::uint8_t, std::uint8_t, mavlink_status_t*,
                                    mavlink_message_t*, const Content*),
            const Content& content) {
    mavlink_message_t message;
    encode(self_.system, self_.component, &status_, &message, &content);
    std::uint8_t frame[MAVLINK_MAX_PACKET_LEN];
    transport_.write(frame, mavlink_msg_to_send_buffer(frame, &message));
  }

  // Send one STATUSTEXT; its length is checked here, as the protocol would cut it.
  template <std::size_t Size>
  void say(std::uint8_t severity, const char (&text)[Size]) {
    static_assert(Size - 1 <= MAVLINK_MSG_STATUSTEXT_FIELD_TEXT_LEN,
                  "a STATUSTEXT has at most 50 characters");
    say_text(severity, text);
  }
  void say_text(std::uint8_t severity, const char* text) {
    mavlink_statustext_t content{};
    content.severity = severity;
    copy_text(content.text, text);
    send(mavlink_msg_statustext_encode_status, content);
  }
  // Send a text of any length, in pieces, of which the last one is not full (MAVLink, STATUSTEXT).
  void say_in_pieces(std::uint8_t severity, const char* text) {
    mavlink_statustext_t content{};
    content.severity = severity;
    // Never 0, which is that of a text of one piece.
    content.id = text_id_ = static_cast<std::uint16_t>(text_id_ % 0xffff + 1);
    for (bool is_full = true; is_full; content.chunk_seq++) {
      __builtin_memset(content.text, 0, sizeof(content.text));
      copy_text(content.text, text);
      send(mavlink_msg_statustext_encode_status, content);
      is_full = content.text[sizeof(content.text) - 1] != '\0';
      if (is_full) text += sizeof(content.text);
    }
  }

 private:
  const Transport transport_;
  const Address self_;
  mavlink_status_t status_{};  // holds the sequence number
  std::uint16_t text_id_ = 0;  // of the last text in pieces
};

}  // namespace rlt::link
