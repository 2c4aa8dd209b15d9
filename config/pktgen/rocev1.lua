-- SPDX-License-Identifier: BSD-3-Clause
-- 64 B WRITEs over RoCEv1.
-- rocigen: --opcode WRITE_ONLY --size 64
-- way: rocev1
dofile((os.getenv("ROCIGEN_PROFILES") or ".") .. "/receive.lua")
receive({ rate = 100, burst = 32 })
