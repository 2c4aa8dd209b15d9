-- SPDX-License-Identifier: BSD-3-Clause
-- Shared by all profiles, for Pktgen-DPDK (-f PROFILE.lua): sends the packets of the capture
-- file given with -s, ROCIGEN_COUNT of them, and writes the number sent and the time taken to
-- ROCIGEN_REPORT. `run` sets both.
local port = "0"
local wanted = tonumber(os.getenv("ROCIGEN_COUNT") or "1000000")
local report = os.getenv("ROCIGEN_REPORT")

function receive(profile)
	pktgen.screen("off")
	pktgen.pcap(port, "on")
	pktgen.set(port, "count", wanted)
	pktgen.set(port, "rate", profile.rate or 100)
	pktgen.set(port, "burst", profile.burst or 32)
	pktgen.clr()
	pktgen.delay(200)
	pktgen.start(port)
	-- The rate is that of its best second: what takes less than two or three tells none.
	local best = 0
	local sent = 0
	local still = 0
	repeat
		pktgen.delay(100)
		local now = pktgen.portStats(port, "port")[0].opackets
		best = math.max(best, pktgen.portStats(port, "rate")[0].pkts_tx)
		still = now == sent and still + 1 or 0
		sent = now
	until sent >= wanted or still > 50
	pktgen.stop(port)
	if report then
		local file = io.open(report, "w")
		file:write(string.format('{"sent": %d, "mpps": %.4f}\n', sent, best / 1e6))
		file:close()
	end
	-- memif takes with it what the other side has not read yet.
	local gone = os.getenv("ROCIGEN_GONE")
	while gone and not io.open(gone, "r") do
		pktgen.delay(100)
	end
	pktgen.quit()
end
