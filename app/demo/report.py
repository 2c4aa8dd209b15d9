# SPDX-License-Identifier: BSD-3-Clause
"""What the demo prints, and when it counts as failed."""

SIZES = ((1 << 20, "MiB"), (1 << 10, "KiB"))

# Rows of the wire's table: (text, how to find the number in a daemon's counters).
WIRE = (
    ("packets sent", lambda c: c["transport"]["tx_packets"]),
    ("packets received", lambda c: c["transport"]["rx_packets"]),
    ("lost by the link on their way here", lambda c: link(c)["lost"]),
    ("ACKs and NAKs sent", lambda c: c["transport"]["tx_acks"]),
    ("ACKs and NAKs received", lambda c: c["transport"]["rx_acks"]),
    ("gaps: packets that came too early", lambda c: c["transport"]["out_of_sequence"]),
    ("gaps told by the other side's NAK", lambda c: c["transport"]["packet_seq_err"]),
    ("gaps in READ responses", lambda c: c["transport"]["implied_nak_seq_err"]),
    ("time-outs: no answer came", lambda c: c["transport"]["local_ack_timeout_err"]),
    ("packets sent again", lambda c: c["transport"]["retransmits"]),
    ("duplicates noticed", lambda c: c["transport"]["duplicate_request"]),
    ("damaged packets (wrong ICRC)", lambda c: c["transport"]["drops"]["icrc"]),
)


def link(counters):
    return counters["ports"][0]["link"]


def size_text(size):
    for unit, name in SIZES:
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def judge(run):
    """Returns a sentence for each thing that is wrong."""
    bad = []
    for check in run["checks"]:
        if not check["ok"]:
            bad.append(f"{run['name']}: {check['check']} of {size_text(check['bytes'])}: the "
                       f"digests differ, {check['digest_a']} at a and {check['digest_b']} at b")
    a, b = (run["wire"][side]["transport"] for side in "ab")
    moved = sum(check["bytes"] for check in run["checks"])
    lost = sum(link(run["wire"][side])["lost"] for side in "ab")
    again = a["retransmits"] + b["retransmits"]
    implausible = (
        (len(run["checks"]) != 15, f"{len(run['checks'])} digests were compared, not 15"),
        (a["tx_bytes"] + b["tx_bytes"] < moved,
         "fewer bytes were sent than the messages have"),
        (b["rx_packets"] > a["tx_packets"] or a["rx_packets"] > b["tx_packets"],
         "more packets were received than sent"),
        (not a["tx_acks"] or not b["tx_acks"], "a side never sent an ACK"),
        (a["drops"]["icrc"] + b["drops"]["icrc"] > 0, "packets came with a wrong ICRC"),
        (run["loss"] > 0 and not lost, "the emulated link lost nothing"),
        (run["loss"] > 0 and not again, "packets were lost, but none was sent again"),
        (run["loss"] == 0 and lost, "the perfect link lost packets"),
    )
    return bad + [f"{run['name']}: {text}" for wrong, text in implausible if wrong]


def introduce(address, cpus):
    print(f"""
RDMA without RDMA hardware: no NIC, no hugepages, no kernel module.

  program a                                               program b
      |  queue pair in shared memory                          |
   rocid a  <------------ emulated Ethernet ------------>  rocid b
  {address['a']:<10}   RoCEv2: UDP port 4791, path MTU 4096    {address['b']}

CPUs: rocid {cpus['rocid-a']} and {cpus['rocid-b']}, programs {cpus['program-a']} and """
          f"""{cpus['program-b']}.""", flush=True)


def show(run, number):
    loss = f"{run['loss'] * 100:g} % of the packets lost, each way" if run["loss"] else "no loss"
    print(f"\n{number}. {run['name'].capitalize()} ({loss})")
    show_digests(run)
    show_speed(run)
    show_wire(run)


def show_digests(run):
    operations = ("WRITE", "READ", "SEND")
    cell = {(c["check"], c["bytes"]): c for c in run["checks"]}
    print("\n   The bytes. Both programs compute a digest of their own memory:\n")
    print("   message   " + "".join(f"{name:<26}" for name in operations).rstrip())
    for size in sorted({c["bytes"] for c in run["checks"]}):
        row = f"   {size_text(size):<10}"
        for name in operations:
            check = cell[name, size]
            row += f"{check['digest_a']} {'equal' if check['ok'] else 'DIFFERS':<9}"
        print(row.rstrip())


def show_speed(run):
    cell = {(m["measure"], m["bytes"]): m for m in run["measurements"]}
    print("\n   The speed. Four busy processes may share CPUs: this is not a benchmark.\n")
    if run["loss"]:
        print("   Nothing follows the last packet of a message, so nobody notices when it is lost\n"
              "   but its sender, after a time-out of 0.5 s: hence the slow ones.\n")
    print("   message          WRITE                   READ              SEND, one way")
    print("             messages/s     Gb/s    messages/s     Gb/s    median us  99 % below")
    for size in sorted({m["bytes"] for m in run["measurements"]}):
        row = f"   {size_text(size):<8}"
        for name in ("write", "read"):
            m = cell[name, size]
            rate = m["messages"] / m["seconds"]
            row += f"{rate:>12,.0f} {rate * size * 8e-9:>8.2f}  "
        m = cell["send_latency", size]
        print(row + f"{m['median_us']:>11,.1f} {m['p99_us']:>11,.1f}")


def show_wire(run):
    print("\n   The wire, from both daemons' counters:\n")
    print(f"   {'':<38}{'rocid a':>12}{'rocid b':>12}")
    for text, find in WIRE:
        print(f"   {text:<38}{find(run['wire']['a']):>12,}{find(run['wire']['b']):>12,}")
    if run["tries"] > 1:
        print(f"\n   Attempt {run['tries']}: before, a process was paused until the other end gave up.")
    print(f"\n   This took {run['seconds']:.1f} s.", flush=True)


def conclude(runs, failures, seconds):
    compared = sum(len(run["checks"]) for run in runs)
    print()
    if not failures:
        again = sum(runs[-1]["wire"][side]["transport"]["retransmits"] for side in "ab")
        print(f"All {compared} digests are equal; packets that the link lost were sent again "
              f"({again:,} packets). {seconds:.1f} s in all.")
    for sentence in failures:
        print(f"FAILED: {sentence}.")
