// A connection to a program of this machine: to a TCP port, whose PORT:TOKEN says a port and what
// is sent there first, so that the other program knows this one; or, on Linux, to a name in the
// abstract namespace of Unix-domain sockets, of which no file is left.
#pragma once

#if defined(_WIN32)
#include <winsock2.h>
#else
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#endif

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace rlt::external {

class Socket {
 public:
  Socket() = default;
  ~Socket() {
    if (is_open()) close();
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // Connect to PORT:TOKEN, and send the token. What is sent goes out at once; `unread_bytes` bounds
  // how much of it the system holds for a program that does not read, where it is not 0. False
  // where nothing listens there.
  bool connect_to_port(const char* text, int unread_bytes = 0) {
    char* token = nullptr;
    const unsigned long port = std::strtoul(text, &token, 10);
    if (port == 0 || port > 65535 || *token != ':') return false;
    token++;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int at_once = 1;
    return open(AF_INET) &&
           (unread_bytes == 0 || set_option(SOL_SOCKET, SO_SNDBUF, unread_bytes)) &&
           set_option(IPPROTO_TCP, TCP_NODELAY, at_once) && connect(&address, sizeof address) &&
           send_all(token, std::strlen(token));
  }

  // Connect to a program of this user's by its name; false where there is none. Names in the
  // abstract namespace are open to every user of the machine.
  bool connect_to_name([[maybe_unused]] const char* name) {
#if defined(__linux__)
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::size_t length = std::strlen(name);
    if (length >= sizeof address.sun_path) return false;
    __builtin_memcpy(address.sun_path + 1, name, length);  // a zero before it: it is no path
    ucred other{};
    socklen_t size = sizeof other;
    return open(AF_UNIX) && connect(&address, offsetof(sockaddr_un, sun_path) + 1 + length) &&
           ::getsockopt(handle_, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 &&
           other.uid == ::getuid();
#else
    return false;
#endif
  }

  // Send all bytes, however long that takes; false where the other end is gone.
  bool send_all(const void* data, std::size_t count) {
    const char* rest = static_cast<const char*>(data);
    while (count > 0) {
      const auto sent = ::send(handle_, rest, static_cast<Size>(count), kNoSignal);
      if (sent < 0 && is_interrupted()) continue;
      if (sent <= 0) return false;
      rest += sent;
      count -= static_cast<std::size_t>(sent);
    }
    return true;
  }

  // Send what the system takes without waiting. Return how much that is, or -1 where the other end
  // is gone.
  long send_now(const void* data, std::size_t count) {
    const char* bytes = static_cast<const char*>(data);
#if defined(_WIN32)
    set_waiting(false);
    const int sent = ::send(handle_, bytes, static_cast<Size>(count), 0);
    const bool is_full = sent < 0 && WSAGetLastError() == WSAEWOULDBLOCK;
    set_waiting(true);
#else
    const auto sent = ::send(handle_, bytes, count, kNoSignal | MSG_DONTWAIT);
    const bool is_full = sent < 0 && (errno == EAGAIN || is_interrupted());
#endif
    return is_full ? 0 : static_cast<long>(sent);
  }

  // Receive what has arrived, or wait for it. Return how much that is, or -1 where the other end is
  // gone.
  long receive(void* data, std::size_t capacity) {
    for (;;) {
      const auto received =
          ::recv(handle_, static_cast<char*>(data), static_cast<Size>(capacity), 0);
      if (received > 0) return static_cast<long>(received);
      if (received == 0 || !is_interrupted()) return -1;
    }
  }

  // Wait for at most so long. Return whether receive() or send_now() has something to do.
  bool has_input(int timeout_ms) { return is_ready(timeout_ms, true); }
  bool takes_output(int timeout_ms) { return is_ready(timeout_ms, false); }

 private:
#if defined(_WIN32)
  using Handle = SOCKET;
  using Size = int;
  static constexpr Handle kNone = INVALID_SOCKET;
  static constexpr int kNoSignal = 0;
  static bool is_interrupted() { return false; }
  static bool is_started() {
    WSADATA unused;
    static const bool is_there = WSAStartup(MAKEWORD(2, 2), &unused) == 0;
    return is_there;
  }
  void set_waiting(bool waits) {
    u_long at_once = waits ? 0 : 1;
    ::ioctlsocket(handle_, FIONBIO, &at_once);
  }
  void close() { ::closesocket(handle_); }
#else
  using Handle = int;
  using Size = std::size_t;
  static constexpr Handle kNone = -1;
#if defined(MSG_NOSIGNAL)
  static constexpr int kNoSignal = MSG_NOSIGNAL;
#else
  static constexpr int kNoSignal = 0;  // board.cpp ignores it
#endif
  static bool is_interrupted() { return errno == EINTR; }
  static constexpr bool is_started() { return true; }
  void close() { ::close(handle_); }
#endif

  bool is_open() const { return handle_ != kNone; }
  bool open(int family) {
    if (is_open()) close();
    if (is_started()) handle_ = ::socket(family, SOCK_STREAM, 0);
    return is_open();
  }
  bool set_option(int level, int name, int value) {
    return ::setsockopt(handle_, level, name, reinterpret_cast<const char*>(&value),
                        sizeof value) == 0;
  }
  bool connect(const void* address, std::size_t size) {
    return ::connect(handle_, static_cast<const sockaddr*>(address), static_cast<int>(size)) == 0;
  }

  bool is_ready(int timeout_ms, bool reads) {
#if defined(_WIN32)
    timeval timeout{timeout_ms / 1000, timeout_ms % 1000 * 1000};
    fd_set sockets;
    FD_ZERO(&sockets);
    FD_SET(handle_, &sockets);
    fd_set* const none = nullptr;
    return ::select(0, reads ? &sockets : none, reads ? none : &sockets, none, &timeout) > 0;
#else
    pollfd request{handle_, static_cast<short>(reads ? POLLIN : POLLOUT), 0};
    return ::poll(&request, 1, timeout_ms) > 0;
#endif
  }

  Handle handle_ = kNone;
};

}  // namespace rlt::external
