-- SPDX-License-Identifier: BSD-3-Clause
-- Every hundredth is corrupted, so that all later packets of its QP are dropped too.
-- rocigen: --opcode WRITE_ONLY --size 64 --bad-icrc 100
dofile((os.getenv("ROCIGEN_PROFILES") or ".") .. "/receive.lua")
receive({ rate = 100, burst = 32 })
