-- SPDX-License-Identifier: BSD-3-Clause
-- WRITEs of 64 KiB in packets of 4 KiB.
-- rocigen: --opcode WRITE_ONLY --size 4096 --message 16
dofile((os.getenv("ROCIGEN_PROFILES") or ".") .. "/receive.lua")
receive({ rate = 100, burst = 32 })
