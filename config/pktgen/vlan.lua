-- SPDX-License-Identifier: BSD-3-Clause
-- 64 B WRITEs in VLAN 7.
-- rocigen: --opcode WRITE_ONLY --size 64 --vlan 7 --pcp 3
-- way: vlan
dofile((os.getenv("ROCIGEN_PROFILES") or ".") .. "/receive.lua")
receive({ rate = 100, burst = 32 })
