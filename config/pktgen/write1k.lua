-- SPDX-License-Identifier: BSD-3-Clause
-- 1 KiB WRITEs.
-- rocigen: --opcode WRITE_ONLY --size 1024
dofile((os.getenv("ROCIGEN_PROFILES") or ".") .. "/receive.lua")
receive({ rate = 100, burst = 32 })
