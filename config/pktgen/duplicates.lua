-- SPDX-License-Identifier: BSD-3-Clause
-- The same 64 B WRITE repeatedly: one is executed, all others are duplicates.
-- rocigen: --opcode WRITE_ONLY --size 64 --psn-step 0
dofile((os.getenv("ROCIGEN_PROFILES") or ".") .. "/receive.lua")
receive({ rate = 100, burst = 32 })
