-- SPDX-License-Identifier: BSD-3-Clause
-- 64 B SENDs to posted receives, at most half a million per second: the receiver sleeps in between.
-- rocigen: --opcode SEND_ONLY --size 64 --rate 0.5
dofile((os.getenv("ROCIGEN_PROFILES") or ".") .. "/receive.lua")
receive({ rate = 100, burst = 32 })
