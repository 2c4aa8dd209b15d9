-- SPDX-License-Identifier: BSD-3-Clause
-- 64 B WRITEs, every tenth one marked: congestion experienced.
-- rocigen: --opcode WRITE_ONLY --size 64 --ce 10
dofile((os.getenv("ROCIGEN_PROFILES") or ".") .. "/receive.lua")
receive({ rate = 100, burst = 32 })
