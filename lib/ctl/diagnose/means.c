/* SPDX-License-Identifier: BSD-3-Clause */
/* What each counter of dropped packets means, for `rocictl show drops` and doc/troubleshooting.md.
 */
#include <stddef.h>
#include "diagnose/diagnose.h"
#include "drop.h"

/* If you add a reason to drop.h, it needs a row here. */
static const char *const means[DROP_MAX] = {
	[DROP_NOT_ROCE] = "neither RoCEv1 nor RoCEv2; others' traffic, harmless",
	[DROP_ETH_SHORT] = "shorter than its Ethernet header: a broken link or sender",
	[DROP_VLAN_STACKED] = "two VLAN tags: have the switch take the outer one off",
	[DROP_IP_VERSION] = "the IP version is not what the EtherType says: a broken sender",
	[DROP_IP4_IHL] = "IPv4 options, which RoCE does not allow: IGMP or others' traffic, "
			 "harmless; or find "
			 "who adds them to RoCE",
	[DROP_IP4_CHECKSUM] = "wrong IPv4 checksum: damaged on the way, or a sender that leaves it "
			      "to an offload which is not there (ethtool -K DEV tx off)",
	[DROP_IP4_FRAGMENT] = "IPv4 fragments: the path MTU is above the link's; lower path_mtu",
	[DROP_IP4_NOT_DF] = "the don't-fragment bit is missing: a sender that breaks RoCEv2",
	[DROP_IP_LENGTH] = "the IP length is not that of the frame: cut off on the way, or padding "
			   "that is not Ethernet's",
	[DROP_IP_NEXT_HEADER] = "no UDP: others' traffic, or IPv6 extension headers",
	[DROP_GRH_NEXT_HEADER] = "RoCEv1 without a BTH behind the GRH: a broken sender",
	[DROP_UDP_PORT] = "UDP to another port than 4791; others' traffic",
	[DROP_UDP_LENGTH] = "the UDP length is not IP's: a broken sender, or cut off on the way",
	[DROP_BTH_SHORT] = "no room for a BTH and an ICRC: no RoCE, or cut off on the way",
	[DROP_BTH_TVER] = "another transport version than 0: no RoCE, or a broken sender",
	[DROP_BTH_ALIGN] = "the length is no multiple of four: no RoCE, or a broken sender",
	[DROP_OPCODE_CLASS] = "an opcode class that no QP here has: a peer with other kinds of QPs",
	[DROP_HEADER_SHORT] = "no room for the headers of its opcode: a broken sender",
	[DROP_PAD] = "a pad count that the opcode does not allow: a broken sender",
	[DROP_DMAC] =
		"for another station's MAC: flooded by a switch, which is harmless, or a peer "
		"with an old neighbour entry",
	[DROP_SGID] = "from a group's address: a broken sender",
	[DROP_MARTIAN] = "from outside with an address of this port as its source: somebody "
			 "pretends to be this host, or another station has the same address",
	[DROP_DGID] = "for an address that is no GID of the port, or one of another type (RoCEv1, "
		      "RoCEv2) or VLAN: see `rocictl show gids`",
	[DROP_QP0] = "for QP0, which RoCE does not have: a subnet manager's, harmless",
	[DROP_QPN_MCAST] = "a group's address or QPN without the other: a broken sender",
	[DROP_NO_GSI] = "management datagrams for QP 1, which no program has: rdma_cm programs "
			"(rping, ucmatose) need a connection manager here, and there is none yet",
	[DROP_QPN_UNKNOWN] = "for a QP that is not there (any more): dest_qp_num is wrong, or the "
			     "program ended before its peer; late answers are harmless",
	[DROP_ICRC] =
		"wrong ICRC: damaged on the way, headers rewritten (NAT, tunnel, offload), or "
		"a sender that computes it otherwise",
	[DROP_QP_TYPE] = "of another transport service than the QP: create QPs of one type at both "
			 "ends",
	[DROP_QP_STATE] =
		"the QP does not receive in its state: RTR for requests, RTS for answers; "
		"an ERR QP drops what is late, see why it failed",
	[DROP_QP_ADDRESS] = "not from the QP's peer, or to another of our GIDs: type, family, "
			    "address or VLAN differ from the QP's address vector",
	[DROP_QP_PEER] = "from a QP of this rocid that is not the peer: dest_qp_num is wrong at "
			 "one end, or a program pretends to be another one",
	[DROP_PKEY] = "of another partition, or both ends are limited members",
	[DROP_QKEY] = "a datagram with another Q_Key than the QP's: both programs must use one, "
		      "remote_qkey there and qkey here",
	[DROP_OPCODE_UNSUPPORTED] = "an opcode that the QP's service does not have: a broken peer",
	[DROP_CNP_IGNORED] =
		"congestion notices for a port without congestion control (rocid --cc), harmless",
	[DROP_PSN_AHEAD] = "behind a lost packet; the peer sends again. If a QP never takes any, "
			   "rq_psn is not the peer's sq_psn",
	[DROP_PSN_BEHIND] = "from before the first PSN that the QP waits for: rq_psn is not the "
			    "peer's sq_psn. The peer takes it for done, but it was not executed",
	[DROP_DUP_NO_RESOURCE] = "a READ that was asked for again after it was forgotten: loss, or "
				 "max_dest_rd_atomic below the peer's max_rd_atomic",
	[DROP_RNR_PENDING] = "behind a message for which no receive was posted; the peer sends "
			     "again. Post more receives",
	[DROP_MESSAGE_TORN] = "the rest of a UC message of which a packet was lost, or from before "
			      "the QP was ready; UC sends nothing again",
	[DROP_NO_RECV_WQE] = "a UC or UD message for which no receive was posted, which is lost: "
			     "post more receives",
	[DROP_REQUEST_LENGTH] = "a UC or UD message that is longer than its receive, or whose "
				"packets are not as long as path MTU and DMALen say: post larger "
				"receives, set the same path MTU at both ends",
	[DROP_REQUEST_ACCESS] = "a UC WRITE to what the peer may not write: the rkey, the "
				"range, or the QP's access flags do not allow it",
	[DROP_GHOST_ACK] = "answers to nothing that is outstanding: late, after loss. If a QP gets "
			   "no other, sq_psn is not the peer's rq_psn",
	[DROP_AETH_RESERVED] = "a reserved syndrome: a broken peer",
	[DROP_READ_RESP_UNEXPECTED] = "READ responses behind a lost one, or doubled: loss",
	[DROP_INJECTED] = "lost on purpose: faults are injected, see \"show faults\"",
	[DROP_GROUP_BUSY] =
		"a multicast datagram for the queue pairs of an application that had not "
		"received earlier ones: send less, or attach fewer of its queue pairs",
	[DROP_HANDOFF_FULL] = "a worker was slower than the others that pass packets to it: sent "
			      "again; use fewer QPs a worker, or more workers",
	[DROP_FRAME_TOO_LONG] = "longer than a packet buffer: the peer's MTU is above this port's",
};

const char *why_drop_means(enum drop why)
{
	return (unsigned)why < DROP_MAX ? means[why] : NULL;
}
