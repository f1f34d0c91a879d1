"""A policy as a component for ESP-IDF: integrations/esp_idf/rlt_policy that stands alone."""

from __future__ import annotations

from rltools_host.policies import export
from rltools_host.policies.image import PolicyImage
from rltools_host.policies.library_folder import LICENSE, folder_of, library_headers
from rltools_host.tree import TREE

TEMPLATE = TREE.root / "integrations" / "esp_idf" / "rlt_policy"
MARK = "idf_component.yml"
EXAMPLE = "examples/policy_task"
# Not what a build leaves behind.
PARTS = (
    *("CMakeLists.txt", "Kconfig", MARK, "include", "src", f"{EXAMPLE}/CMakeLists.txt"),
    *(f"{EXAMPLE}/partitions.csv", f"{EXAMPLE}/sdkconfig.defaults", f"{EXAMPLE}/main"),
)
EMBEDDED = f"{EXAMPLE}/main/policy.rltp"


def policy_header(image: PolicyImage) -> str:
    """Contract and image for rlt_policy_init(), in C."""
    name = export.identifier(image.experiment)
    return HEADER.format(
        name=name,
        step=image.step,
        seed=image.seed,
        step_interval_us=image.step_interval_us,
        observation_dim=len(image.contract.observations),
        action_dim=len(image.actions),
        observations=export.channel_rows(image.contract.observations),
        actions=export.channel_rows(image.actions),
        safe_action=export.number_list(image.runner.safe_action()[0]),
        size=len(image.data),
        bytes=export.byte_rows(image.data),
    )


def component_files(image: PolicyImage) -> tuple[str, dict[str, bytes]]:
    """The component's name and files."""
    files = folder_of(TEMPLATE, *PARTS)
    sources = [content for path, content in files.items() if path.endswith((".h", ".cpp"))]
    for header, content in library_headers(sources).items():
        files[f"include/{header}"] = content
    name = export.identifier(image.experiment)
    files[f"include/{name}_policy.h"] = policy_header(image).encode()
    files[EMBEDDED] = image.data
    files["LICENSE"] = LICENSE.read_bytes()
    return TEMPLATE.name, files


HEADER = """\
// The policy of {name}: step {step}, seed {seed}. Written by `rlt export RUN --to esp-idf`.
#pragma once

#include "rlt_policy.h"

static const rlt_channel_t {name}_observations[] = {{
{observations}
}};
static const rlt_channel_t {name}_actions[] = {{
{actions}
}};
// What is done where something is wrong.
static const float {name}_safe_action[] = {{{safe_action}}};
static const rlt_contract_t {name}_contract = {{
    {step_interval_us}, {observation_dim}, {action_dim}, {name}_observations, {name}_actions,
    {name}_safe_action}};

static const uint8_t {name}_image[{size}] __attribute__((aligned(4))) = {{
{bytes}
}};
"""
