-- SPDX-License-Identifier: BSD-3-Clause
-- 64 B WRITEs to one QP: the rate of a receiver.
-- rocigen: --opcode WRITE_ONLY --size 64
dofile((os.getenv("ROCIGEN_PROFILES") or ".") .. "/receive.lua")
receive({ rate = 100, burst = 32 })
