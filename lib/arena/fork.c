/* SPDX-License-Identifier: BSD-3-Clause */
#include "arena_impl.h"

void fork_prepare(void)
{
}
