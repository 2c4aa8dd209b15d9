-- SPDX-License-Identifier: BSD-3-Clause
-- 64 B WRITEs with a wrong ICRC: the cost of a drop.
-- rocigen: --opcode WRITE_ONLY --size 64 --bad-icrc 1
dofile((os.getenv("ROCIGEN_PROFILES") or ".") .. "/receive.lua")
receive({ rate = 100, burst = 32 })
