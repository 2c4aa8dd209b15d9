-- SPDX-License-Identifier: BSD-3-Clause
-- Each hundredth is spoilt, so that all that follow its QP's gap are dropped too.
-- rocigen: --opcode WRITE_ONLY --size 64 --bad-icrc 100
dofile((os.getenv("ROCIGEN_PROFILES") or ".") .. "/receive.lua")
receive({ rate = 100, burst = 32 })
