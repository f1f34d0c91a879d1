// The infer application: policies are pushed to the board, checked, tried and confirmed, and act.
// It is a list of services; docs/protocol.md describes what they do.
#pragma once

#include "app/link/node.h"
#include "app/services/policies/policy_service.h"

namespace rlt {

template <class Contract, class Device, class Storage, std::size_t ScratchFloats>
class InferApplication {
  using Service = PolicyService<Contract, Device, Storage, ScratchFloats>;
  using Files = FileServer<typename Service::Files>;

 public:
  InferApplication(Device device, Storage& storage, link::Transport transport, link::Address self,
                   link::NodeNames names)
      : sender_(transport, self),
        policies_(device, storage, sender_),
        node_(transport, self, names, sender_, heartbeat_, policies_.file_server(), policies_) {}

  // Do one turn of the main loop: messages, and at most one piece of work of each service.
  void poll() {
    if (!node_.poll()) board::idle();
  }

 private:
  link::MessageSender sender_;
  link::HeartbeatClock heartbeat_;
  Service policies_;
  link::Node<Files, Service> node_;
};

}  // namespace rlt
