-- SPDX-License-Identifier: BSD-3-Clause
-- 64 B WRITEs to 100 QPs in turn.
-- rocigen: --opcode WRITE_ONLY --size 64
-- qps: 100
dofile((os.getenv("ROCIGEN_PROFILES") or ".") .. "/receive.lua")
receive({ rate = 100, burst = 32 })
