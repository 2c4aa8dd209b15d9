-- SPDX-License-Identifier: BSD-3-Clause
-- ACKs of nothing.
-- rocigen: --opcode ACKNOWLEDGE
dofile((os.getenv("ROCIGEN_PROFILES") or ".") .. "/receive.lua")
receive({ rate = 100, burst = 32 })
