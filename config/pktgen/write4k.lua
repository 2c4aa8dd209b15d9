-- SPDX-License-Identifier: BSD-3-Clause
-- 4 KiB WRITEs: bandwidth.
-- rocigen: --opcode WRITE_ONLY --size 4096
dofile((os.getenv("ROCIGEN_PROFILES") or ".") .. "/receive.lua")
receive({ rate = 100, burst = 32 })
