/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0
 *
 * What stamps.bpf.c reads of a packet, and the stamp of one.
 */

/* What is read of a packet of TCP or UDP. */
struct fields {
	u32 flow;
	u32 number;
	u32 length;
};

/* Reads a packet whose network header begins at `header`; 0: of another protocol. One of more than
 * 65535 bytes, which the kernel cuts later, has no length in its header. */
INLINE int parsed(struct sk_buff *skb, const u8 *header, struct fields *to)
{
	u8 h[56];
	u32 whole, protocol;

	if (read_kernel(h, sizeof(h), header))
		return 0;
	if (h[0] >> 4 == 4 && (h[0] & 15) == 5) {
		protocol = h[9];
		whole = (h[2] << 8 | h[3] ?: skb->len - (u32)(header - skb->data)) - 20;
		to->flow = (u32)h[20] << 24 | h[21] << 16 | h[22] << 8 | h[23];
		if (protocol == 6) {
			to->number = (u32)h[24] << 24 | h[25] << 16 | h[26] << 8 | h[27];
			to->length = whole - (h[32] >> 4) * 4;
		} else {
			to->number = *(u32 *)&h[28];
			to->length = whole - 8;
		}
	} else if (h[0] >> 4 == 6) {
		protocol = h[6];
		whole = h[4] << 8 | h[5] ?: skb->len - (u32)(header - skb->data) - 40;
		to->flow = (u32)h[40] << 24 | h[41] << 16 | h[42] << 8 | h[43];
		if (protocol == 6) {
			to->number = (u32)h[44] << 24 | h[45] << 16 | h[46] << 8 | h[47];
			to->length = whole - (h[52] >> 4) * 4;
		} else {
			to->number = *(u32 *)&h[48];
			to->length = whole - 8;
		}
	} else {
		return 0;
	}
	return protocol == 6 || protocol == 17;
}

/* A packet: of one of our sockets, else left out. */
INLINE void packet(struct shared *s, u8 kind, struct sk_buff *skb, const u8 *header)
{
	u64 now = ktime_ns();
	struct fields f;

	if (!parsed(skb, header, &f)) {
		network_works_for_others(s, now);
		return;
	}
	struct task_struct *task = current_task();
	if (kind == QUEUE && is_ours(s, task->tgid))
		add_port(s, f.flow >> 16);
	if ((!has_port(s, f.flow >> 16) && !has_port(s, f.flow)) ||
	    !is_here(s, skb->dev->nd_net.net)) {
		network_works_for_others(s, now);
		return;
	}
	network_works_for_us(s, now, task);
	put(s, now, kind, task, f.flow, f.number, f.length);
}
