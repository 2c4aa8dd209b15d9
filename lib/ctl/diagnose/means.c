/* SPDX-License-Identifier: BSD-3-Clause */
/* The meaning of each counter of dropped packets, for `rocictl show drops` and
 * doc/troubleshooting.md.
 */
#include <stddef.h>
#include "diagnose/diagnose.h"
#include "drop.h"

/* If you add a reason to drop.h, it needs a row here. */
static const char *const means[DROP_MAX] = {
	[DROP_NOT_ROCE] = "neither RoCEv1 nor RoCEv2: other traffic, harmless",
	[DROP_ETH_SHORT] = "shorter than an Ethernet header: the link or the sender is faulty",
	[DROP_VLAN_STACKED] = "two VLAN tags: configure the switch to remove the outer one",
	[DROP_IP_VERSION] = "the IP version does not match the EtherType: the sender is faulty",
	[DROP_IP4_IHL] = "IPv4 options, which RoCE does not allow: harmless if it is IGMP or other "
			 "traffic; if it is RoCE, find out which device adds them",
	[DROP_IP4_CHECKSUM] = "wrong IPv4 checksum: corrupted in transit, or left by the sender to "
			      "an offload that did not compute it (ethtool -K DEV tx off there)",
	[DROP_IP4_FRAGMENT] =
		"IPv4 fragments: the path MTU is larger than a link's MTU; set a smaller path_mtu",
	[DROP_IP4_NOT_DF] = "the don't-fragment bit is not set: the sender violates RoCEv2",
	[DROP_IP_LENGTH] = "the IP length does not match the frame: truncated in transit, or "
			   "padding other than Ethernet's",
	[DROP_IP_NEXT_HEADER] = "not UDP: other traffic, or IPv6 extension headers",
	[DROP_GRH_NEXT_HEADER] = "RoCEv1 without a BTH after the GRH: the sender is faulty",
	[DROP_UDP_PORT] = "UDP to a port other than 4791: other traffic, harmless",
	[DROP_UDP_LENGTH] = "the UDP length does not match the IP length: the sender is faulty, or "
			    "truncated in transit",
	[DROP_BTH_SHORT] = "too short for a BTH and an ICRC: not RoCE, or truncated in transit",
	[DROP_BTH_TVER] = "a transport version other than 0: not RoCE, or the sender is faulty",
	[DROP_BTH_ALIGN] = "the length is not a multiple of 4: not RoCE, or the sender is faulty",
	[DROP_OPCODE_CLASS] =
		"an opcode class that no QP here supports: the peer uses another QP type, or asks "
		"whether this port takes runs of frames (--gso), which is harmless",
	[DROP_HEADER_SHORT] = "too short for the headers of its opcode: the sender is faulty",
	[DROP_PAD] = "a pad count that the opcode does not allow: the sender is faulty",
	[DROP_FAST_CNP_HEADER] = "a Fast CNP whose options do not fit into their header, or into "
				 "the packet: the switch is faulty",
	[DROP_FAST_CNP_UNKNOWN] = "a Fast CNP without an option of a type that the port expects: "
				  "set fastcnp_opt1 and fastcnp_opt2 to the switch's types "
				  "(`rocictl set port PORT cc`)",
	[DROP_FAST_CNP_TWICE] = "a Fast CNP with more than one option: the switch is faulty",
	[DROP_FAST_CNP_LENGTH] = "a Fast CNP whose option has a length that its type cannot have: "
				 "the switch is faulty, or its types are swapped (fastcnp_opt1, "
				 "fastcnp_opt2)",
	[DROP_FAST_CNP_OPCODE] =
		"a packet with the option of a Fast CNP that is not a CNP: the sender is faulty",
	[DROP_DMAC] = "for another station's MAC: harmless if a switch flooded it; otherwise a "
		      "peer has an outdated neighbour entry",
	[DROP_SGID] = "from a multicast address: the sender is faulty",
	[DROP_MARTIAN] = "received from the link with an address of this port as its source: "
			 "another station has the same address, or impersonates this host",
	[DROP_DGID] = "for an address that is not a GID of the port, or one of another type "
		      "(RoCEv1, RoCEv2) or VLAN: compare with `rocictl show gids`",
	[DROP_QP0] = "for QP 0, which RoCE does not have: from a subnet manager, harmless",
	[DROP_QPN_MCAST] = "a multicast address without the multicast QPN, or the reverse: the "
			   "sender is faulty",
	[DROP_NO_GSI] =
		"management datagrams for QP 1, which does not exist: rdma_cm programs (rping, "
		"ucmatose) need a connection manager: start rocid without `--cm no`",
	[DROP_QPN_UNKNOWN] = "for a QP that does not exist, or no longer: dest_qp_num is wrong, or "
			     "the program ended before its peer; late responses are harmless",
	[DROP_ICRC] = "wrong ICRC: corrupted in transit, headers rewritten (NAT, tunnel, offload), "
		      "or computed incorrectly by the sender",
	[DROP_FAST_CNP_SOURCE] = "a Fast CNP from an address that is not in the port's list: add "
				 "the switch with fastcnp=ADDRESS, or find out who sends it",
	[DROP_FAST_CNP_RATE] =
		"more Fast CNPs than fastcnp_rate, fastcnp_rate_all and fastcnp_burst allow: a "
		"switch that does not limit them, or a flood",
	[DROP_FAST_CNP_NO_QP] = "a Fast CNP about packets that no QP sends: it came late, harmless",
	[DROP_QP_TYPE] = "of another transport service than the QP: create QPs of the same type at "
			 "both ends",
	[DROP_QP_STATE] = "the QP's state does not allow it: requests need RTR, responses RTS; a "
			  "QP in ERR drops late packets, see why it failed",
	[DROP_QP_ADDRESS] = "not from the QP's peer, or to another GID of this host: type, family, "
			    "address or VLAN differ from the QP's address vector",
	[DROP_QP_PEER] = "from a QP of this rocid that is not the peer: dest_qp_num is wrong at "
			 "one end, or a program impersonates another one",
	[DROP_PKEY] = "for another partition, or both ends are limited members",
	[DROP_QKEY] = "a datagram whose Q_Key differs from the QP's: the sender's remote_qkey and "
		      "the QP's qkey must be the same",
	[DROP_OPCODE_UNSUPPORTED] =
		"an opcode that the QP's transport service does not have: the peer is faulty",
	[DROP_CNP_IGNORED] =
		"congestion notification packets for a port without congestion control (rocid "
		"--cc): harmless",
	[DROP_CNP_IDLE] = "a CNP for a QP that has sent nothing for 10 ms: it came late, or is "
			  "forged; harmless",
	[DROP_CNP_STRANGER] = "a CNP for a datagram QP, from an address that it has not sent to "
			      "for 10 ms: it came late, or is forged; harmless",
	[DROP_CNP_UNMANAGED] = "a CNP by RoCEv1, or for QP 1, neither of which has congestion "
			       "management: the peer is faulty, or the packet is forged; harmless",
	[DROP_NAMELESS] = "from a QP of this rocid whose memory was deregistered, or faulted, "
			  "before it was read: keep memory registered until its request completes",
	[DROP_PSN_AHEAD] = "after a lost packet; the peer retransmits. If a QP accepts no packet "
			   "at all, rq_psn differs from the peer's sq_psn",
	[DROP_PSN_BEHIND] =
		"precedes the first PSN that the QP expects: rq_psn differs from the peer's "
		"sq_psn. The peer considers the request complete, but it was not executed",
	[DROP_DUP_NO_RESOURCE] =
		"a duplicate READ, FLUSH or atomic whose record was already replaced, or differs: "
		"packet loss, or max_dest_rd_atomic is below the peer's max_rd_atomic",
	[DROP_RNR_PENDING] = "after a message for which no receive was posted; the peer "
			     "retransmits. Post more receives",
	[DROP_MESSAGE_TORN] = "the rest of a UC message that lost a packet or began before the QP "
			      "was ready; UC does not retransmit",
	[DROP_NO_RECV_WQE] = "a UC or UD message that was lost because no receive was posted: post "
			     "more receives",
	[DROP_REQUEST_LENGTH] = "a UC or UD message that is longer than its receive, or whose "
				"packet lengths contradict the path MTU or DMALen: post larger "
				"receives, and set the same path MTU at both ends",
	[DROP_REQUEST_ACCESS] = "a UC WRITE that the rkey, the region's range or the QP's access "
				"flags do not allow",
	[DROP_GHOST_ACK] =
		"responses to requests that are not outstanding: late, after packet loss. If a QP "
		"receives no others, sq_psn differs from the peer's rq_psn",
	[DROP_AETH_RESERVED] = "a reserved syndrome: the peer is faulty",
	[DROP_READ_RESP_UNEXPECTED] =
		"READ responses that are duplicated or follow a lost one: packet loss",
	[DROP_INJECTED] = "dropped by an injected fault: see \"show faults\"",
	[DROP_GROUP_BUSY] =
		"a multicast datagram for the queue pairs of an application that is slow to "
		"receive earlier ones: send less, or attach fewer of its queue pairs",
	[DROP_HANDOFF_FULL] = "a worker was slower than the workers that pass packets to it; the "
			      "peer retransmits: use fewer QPs per worker, or more workers",
	[DROP_FRAME_TOO_LONG] =
		"longer than a packet buffer: the peer's MTU is larger than this port's",
};

const char *drop_means(enum drop why)
{
	return (unsigned)why < DROP_MAX ? means[why] : NULL;
}
