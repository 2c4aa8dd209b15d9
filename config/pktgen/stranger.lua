-- SPDX-License-Identifier: BSD-3-Clause
-- To a QP that does not exist.
-- rocigen: --opcode WRITE_ONLY --size 64
-- qpn: 0xabcdef
dofile((os.getenv("ROCIGEN_PROFILES") or ".") .. "/receive.lua")
receive({ rate = 100, burst = 32 })
