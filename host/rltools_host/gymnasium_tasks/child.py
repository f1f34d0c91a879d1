"""A process that plays a task's episodes: `python -m rltools_host.gymnasium_tasks.child`.

Its standard input has one line, what it is to play (process.py); its standard output one with the
task, or with why not. What environments print goes to the error stream. It ends with its input.
"""

from __future__ import annotations

import json
import os
import threading
from typing import Any

from rltools_host.errors import RltError
from rltools_host.gymnasium_tasks.agreement import require_agreement
from rltools_host.gymnasium_tasks.maker import maker_of
from rltools_host.gymnasium_tasks.play_state import PlayState
from rltools_host.gymnasium_tasks.server import begin, listen, serve_all
from rltools_host.gymnasium_tasks.task import Task, TaskRequest


def end_with_input() -> None:
    """Where whoever started this has gone, nobody waits for what it plays."""
    while os.read(0, 4096):
        pass
    os._exit(0)


def first_line(descriptor: int) -> bytes:
    """Up to its end, and not a byte of what follows."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(descriptor, 1)):
        line += byte
    return line


def main() -> None:
    answer = os.dup(1)
    os.dup2(2, 1)
    document: dict[str, Any] = json.loads(first_line(0))
    state = PlayState.of_descriptor(document["state"])
    os.close(document["state"])
    request = TaskRequest(**{**document["request"], "hidden": tuple(document["request"]["hidden"])})
    try:
        if document["task"]:  # a run's, and not the user's word; this process has its own path
            require_agreement(request.source)
        task = Task.of_document(document["task"]) if document["task"] else None
        task, player = begin(maker_of(request.source), request, task, state)
    except RltError as error:
        message = {"error": str(error), "kind": type(error).__name__}
        os.write(answer, (json.dumps(message) + "\n").encode())
        return
    listener = listen(document["address"])
    os.write(answer, (json.dumps({"task": task.document()}) + "\n").encode())
    threading.Thread(target=end_with_input, daemon=True).start()
    serve_all(listener, player, task)


if __name__ == "__main__":
    main()
