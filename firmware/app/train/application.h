// The train application: an experiment is trained while a host, if there is one, watches and
// commands over MAVLink. It is a list of services; docs/protocol.md describes what they do. No
// allocation; the host is never waited for, but in a rest that it has asked for.
#pragma once

#include "app/link/node.h"
#include "app/services/parameters.h"
#include "app/services/training/training_service.h"

namespace rlt {

template <class E, class Device, bool KeepsBest>
class TrainApplication {
  using Service = TrainingService<E, Device, KeepsBest>;
  using Files = FileServer<typename Service::Files>;
  using Parameters = ParameterService<RunHyperparameters<E>, Service>;

 public:
  using Images = typename Service::Images;

  TrainApplication(Device device, ArithmeticFault arithmetic, link::Transport transport,
                   link::Address self, link::NodeNames names, Training<E>& training, Images& images)
      : sender_(transport, self),
        training_(device, arithmetic, sender_, heartbeat_, training, images),
        parameters_(sender_, training.hyperparameters, training_),
        node_(transport, self, names, sender_, heartbeat_, parameters_, training_.file_server(),
              training_) {}

  RLT_STATE state() const { return training_.state(); }

  // Do one turn of the main loop: messages, and at most one piece of work of each service.
  void poll() {
    if (!node_.poll()) board::idle();
  }

 private:
  link::MessageSender sender_;
  link::HeartbeatClock heartbeat_;
  Service training_;
  Parameters parameters_;
  link::Node<Parameters, Files, Service> node_;
};

}  // namespace rlt
