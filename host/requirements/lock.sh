#!/bin/sh
# Locks the Python packages of pyproject.toml: exact versions with hashes for Python 3.11 to 3.14, one file per group.
# All groups are resolved together first, so that they agree. Needs uv (pip install uv).
set -eu
cd "$(dirname "$0")/../.."
together=$(mktemp)
trap 'rm -f "$together"' EXIT

compile() {
  uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate "$@"
}

compile pyproject.toml --group test --group lint --group platformio --group crazyflie --group fit --group esp-idf \
  --group mujoco --group onnx --group parquet --group zig --group tune --group ray --group ulog \
  --group unicorn --group wandb --group browser --group docs -o "$together"
compile pyproject.toml --generate-hashes -c "$together" -o host/requirements/default.txt
for group in test lint platformio crazyflie fit esp-idf mujoco onnx parquet zig tune ray ulog unicorn wandb browser \
  docs; do
  compile --group "$group" --generate-hashes -c "$together" -o "host/requirements/$group.txt"
done
