//! perftest (`src/perftest_parameters.c`), every option of its versions 4.5 and 6.29.

use super::word::{PORTS, Peer, Word, command, nothing, option};

pub const PERFTEST: Peer = Peer {
    name: "perftest",
    about: "perftest's latencies are half of the time from one post to the next (of reads and \
            atomics, all of it), without the two largest samples: its `t_max` is the second \
            largest, and its `t_stdev` counts whole microseconds only. `half_rtt` is half \
            of the time from the post until the reply was seen, of every sample. Both ends get the \
            options from one command line. `-s 64K` is 65536 bytes in both.",
    words: PERFTEST_WORDS,
};

const PERFTEST_WORDS: &[Word] = &[
    command(
        &["ib_send_lat"],
        "latency --transport verbs",
        "`t_typical` is p50 of `half_rtt`, `t_avg` its mean, `99% percentile` its p99",
    ),
    command(
        &["ib_write_lat"],
        "latency --transport verbs --operation write",
        "as `ib_send_lat`; perftest waits for the completion of each write as well",
    ),
    command(
        &["ib_read_lat"],
        "latency --transport verbs --operation read",
        "`t_typical` is p50 of `rtt`: it is not halved in either",
    ),
    command(
        &["ib_atomic_lat"],
        "latency --transport verbs --operation fetch_add --size 8",
        "`t_typical` is p50 of `rtt`; CMP_AND_SWAP is `--operation compare_swap`",
    ),
    command(
        &["ib_send_bw"],
        "bandwidth --transport verbs",
        "`BW average` in MiB/s times 1.049 is MB/s; `BW peak`, the best of all intervals, has no \
         counterpart",
    ),
    command(&["ib_write_bw"], "bandwidth --transport verbs --operation write", "as `ib_send_bw`"),
    command(&["ib_read_bw"], "bandwidth --transport verbs --operation read", "as `ib_send_bw`"),
    command(
        &["ib_atomic_bw"],
        "bandwidth --transport verbs --operation fetch_add --size 8",
        "`MsgRate[Mpps]` is the message rate",
    ),
    nothing(
        &["raw_ethernet_lat", "raw_ethernet_bw", "raw_ethernet_burst_lat", "raw_ethernet_fs_rate"],
        "raw Ethernet is not measured",
    ),
    option(&["-n", "--iters"], "--count N", "messages of each round; there are 6 rounds"),
    option(
        &["-s", "--size"],
        "--size SIZE",
        "perftest's defaults are 2 bytes, and 64K for bandwidth",
    ),
    option(&["-a", "--all"], "--size 2..8MiB*2", ""),
    option(&["-d", "--ib-dev"], "--device NAME", "`--device A,B`: client A, server B"),
    option(&["-i", "--ib-port"], "--port N", "`--port A,B` if they differ"),
    option(&["-x", "--gid-index"], "--gid-index N", "`--gid-index A,B` if they differ"),
    option(
        &["-c", "--connection"],
        "--service NAME",
        "rc, uc, ud, xrc, dc or srd, with `--transport verbs`",
    ),
    option(&["-D", "--duration"], "--time TIME", "with a unit; quantiles are given as well"),
    option(&["-b", "--bidirectional"], "--direction bi", "both ways at once"),
    option(&["-e", "--events"], "--wait block", "sleep until a completion arrives"),
    option(&["-I", "--inline-size"], "--inline SIZE", ""),
    option(&["-m", "--mtu"], "--mtu N", ""),
    option(&["-q", "--qp"], "--queue-pairs N", "of each thread, as many as there: up to 16384"),
    option(&["-Q", "--cq-mod"], "--signal-every N", ""),
    option(&["-l", "--post-list"], "--burst N", "messages posted together"),
    option(
        &["-t", "--tx-depth"],
        "--window N",
        "`--outstanding N` of `oneway`; `--send-depth` is the queue's own depth",
    ),
    option(&["-r", "--rx-depth"], "--receive-depth N", ""),
    option(&["-R", "--rdma-cm"], "--connect cm", "with `--transport verbs`"),
    option(&["-S", "--sl"], "--service-level N", ""),
    option(
        &["--tclass", "-T", "--tos"],
        "--traffic-class N",
        "by the connection manager too; of sockets: `--dscp`",
    ),
    option(&["-o", "--outs"], "--read-depth N", "outstanding reads and atomics of a queue pair"),
    option(&["-u", "--qp-timeout"], "--qp-timeout N", "also 4.096 us x 2^N"),
    option(&["--flow-label"], "--flow-label N", ""),
    option(
        &["--odp"],
        "--on-demand explicit",
        "with `--transport verbs`; `implicit` registers the whole address space",
    ),
    option(&["--retry-count"], "--retries N", "and `--rnr-retries`, `--rnr-timer`"),
    option(&["--pkey-index"], "--pkey-index N", "`--pkey-index A,B` if they differ"),
    option(&["-A", "--atomic-type"], "--operation NAME", "fetch_add or compare_swap"),
    option(&["-w", "--limit-bw"], "--fail-if LIMIT", "such as bandwidth<10Gb/s"),
    option(&["-y", "--limit-msgrate"], "--fail-if LIMIT", "such as message_rate<1M/s"),
    option(
        &["-H", "--report-histogram", "-U", "--report-unsorted"],
        "--out DIR",
        "all samples are always kept: see `wiregauge export`",
    ),
    option(
        &["--use-old-post-send"],
        "--post classic",
        "with `--transport verbs`; it is the default here",
    ),
    option(&["--cqe-poll"], "--poll extended", "with `--transport verbs`: by `ibv_start_poll`"),
    option(
        &["--disable-pcie-relaxed"],
        "--relaxed-ordering",
        "with `--transport verbs`; the other way round: off unless it is asked for",
    ),
    option(&["--write-with-imm"], "--operation write_imm", "with `--transport verbs`"),
    option(&["--send-with-imm"], "--operation send_imm", "with `--transport verbs`"),
    option(
        &["--unsolicited-write"],
        "--operation write",
        "with `--transport verbs`: its receiver polls memory",
    ),
    option(&["--data-validation", "--data-validation-debug"], "--check", "every payload"),
    option(&["--reply-every"], "--burst N", "one answer for each burst"),
    option(&["--burst-size"], "--burst N", "with `--pause`, or `--rate`"),
    option(&["--pin-cores", "--cpu-id"], "--cpus A,B", "near the adapter where none are named"),
    option(&["--numa-node", "--disable-numa"], "--cpus A,B", "memory is that of the CPU's node"),
    option(&["--bind-source-ip", "--ipv6", "--ipv6-addr"], "--gid-index N", "the GID's address"),
    option(&["--report-counters", "-W"], "--json", "all counters of the ports are in the record"),
    option(&["--report-both"], "--direction bi", "each direction has its own figures"),
    option(&["--output"], "--columns NAMES", "or `--json`"),
    option(&["--use-srq"], "--shared-receive-queue", "with `--transport verbs`"),
    option(&["--use-hugepages"], "--huge-pages", "with `--transport verbs`"),
    option(&["--perform-warm-up"], "--warmup N", "always done; the samples stay in the record"),
    option(&["--latency-gap"], "--pause TIME", "the pause is not part of the latency"),
    option(
        &["--rate-limit"],
        "--rate-limit RATE",
        "by the adapter, as `--rate_limit_type HW`; by the program: `--rate`, in messages/s",
    ),
    option(&["--out-json", "--out-json-file"], "--json", ""),
    option(&["--reversed"], "--hosts HOST,here", "the first host is the client, which sends"),
    nothing(&["-p", "--port"], PORTS),
    nothing(&["-F", "--cpu-freq"], "the clock is measured; a wrong governor is a warning"),
    nothing(&["-C", "--report-cycles"], "times are in ns to s, never in cycles"),
    option(&["-f", "--margin"], "--warmup N", "messages at the start, not seconds"),
    nothing(
        &["-z", "--comm-rdma-cm", "--com-rdma-cm"],
        "the ends exchange addresses by the control channel",
    ),
    nothing(&["-g", "--mcg", "-M", "--mgid"], "multicast is not measured"),
    nothing(&["-N", "--nopeak"], "no peak is computed"),
    nothing(&["--cpu-util"], "CPU time per message is always in the record"),
    option(&["--report-gbits"], "--unit Gb/s", "else MB/s and Gb/s"),
    option(
        &["--run-infinitely"],
        "--forever",
        "until Ctrl-C, which also gives the report; `--report-every 1s` prints lines meanwhile, as \
         `-D 1` does there",
    ),
    option(
        &["-O", "--dualport", "--report-per-port"],
        "--rails WHICH",
        "`--rails all`: all active ports of both hosts, each with its own figures",
    ),
    nothing(&["-X", "--vector"], "the completion vector is the first"),
    nothing(&["-L", "--hop-limit"], "64 hops"),
    nothing(&["--dlid"], "the ends exchange their LIDs"),
    nothing(
        &[
            "-B",
            "--source-mac",
            "-E",
            "--dest-mac",
            "-J",
            "--dest-ip",
            "-j",
            "--source-ip",
            "-K",
            "--dest-port",
            "-k",
            "--source-port",
            "-Y",
            "--ethertype",
            "-Z",
            "--server",
            "-P",
            "--client",
            "-v",
            "--mac-fwd",
            "-G",
            "--use-rss",
            "--remote-mac",
            "--local-mac",
            "--remote-ip",
            "--local-ip",
            "--remote-port",
            "--local-port",
            "--tcp",
            "--flows",
            "--flows-burst",
            "--promiscuous",
            "--sniffer",
            "--raw-mcast",
            "--raw-ipv6",
            "--vlan-en",
            "--vlan-pcp",
            "--typical-pkt-size",
        ],
        "raw Ethernet is not measured",
    ),
    nothing(
        &[
            "--use-cuda-bus-id",
            "--use-cuda-pcie-mapping",
            "--use-data-direct",
            "--cuda-mem-type",
            "--gpu-touch",
            "--use-musa",
            "--use-musa-bus-id",
            "--use-musa-dmabuf",
            "--use-musa-pcie-mapping",
            "--use-neuron",
            "--use-neuron-dmabuf",
            "--use-hl",
            "--use-mlu",
            "--use-mlu-dmabuf",
            "--use-opencl",
            "--opencl-platform-id",
        ],
        "not there: a GPU of NVIDIA or AMD is named by its number, its memory allocated as usual",
    ),
    option(
        &["--use-cuda", "--use-cuda-dmabuf"],
        "--memory cuda:N",
        "also of sends, whose payloads are then not checked; a dma-buf where both drivers can, \
         else by address",
    ),
    option(&["--use-rocm", "--use-rocm-dmabuf"], "--memory rocm:N", "as `--use-cuda`"),
    option(
        &["--use-ib-dm-dmabuf"],
        "--memory KIND",
        "`device`: the adapter's own; registered by `ibv_reg_dm_mr`",
    ),
    nothing(
        &["--mmap", "--mmap-offset", "--use-null-mr", "--mr-per-qp"],
        "payloads are in memory of the process, in one region",
    ),
    nothing(
        &[
            "--aes-xts",
            "--encrypt-on-tx",
            "--sig-before",
            "--aes-block-size",
            "--kek-path",
            "--credentials-path",
            "--data-enc-keys-number",
            "--data-enc-key-app-path",
            "--sig-offload",
        ],
        "encryption and signatures by one vendor's adapters are not measured",
    ),
    nothing(
        &["--log-dci-streams", "--log-active-dci-streams", "--connectionless"],
        "an initiator of DC has one stream; several queue pairs have one each",
    ),
    nothing(
        &["--use-ooo", "--no-enhanced-reorder", "--congest-type", "--tph-mem", "--ph"],
        "settings of one vendor's adapters",
    ),
    option(
        &["--rate-limit-type", "--rate-units"],
        "--rate-limit RATE",
        "by the adapter, in bits per second with a unit",
    ),
    nothing(&["--inline-recv"], "receives are never inline, which one vendor's adapters had"),
    nothing(&["--recv-post-list"], "receives are given back in one list for each poll"),
    nothing(&["--disable-dynamic-polling"], "a poll takes up to 64 completions"),
    nothing(&["--payload-file-path"], "payloads are generated, not read from a file"),
    nothing(&["--force-link"], "the link layer is the port's"),
    nothing(&["--wait-destroy"], "endpoints live until both ends have ended"),
    nothing(&["--dont-xchg-versions"], "both ends must be the same version"),
];

#[cfg(test)]
mod tests {
    use super::PERFTEST;
    use crate::cli::peers::plain;

    /// Options of perftest 4.5, by the `--help` of all its programs in Debian 12; not those of help
    /// and version.
    const OF_4_5: &str = "\
        -A -a -B -b -C -c -D -d -E -e -F -f -G -g -H -I -i -J -j -K -k -L -l -M -m -N -n \
        -O -o -P -p -Q -q -R -r -S -s -T -t -U -u -v -W -w -X -x -Y -y -Z -z \
        --aes_block_size --aes_xts --all --atomic_type --bidirectional --burst_size --client \
        --com_rdma_cm --connection --CPU-freq --cpu_util --cq-mod --credentials_path \
        --data_enc_key_app_path --data_enc_keys_number --dest_ip --dest_mac --dest_port \
        --disable_pcie_relaxed --dlid --dont_xchg_versions --dualport --duration \
        --encrypt_on_tx --ethertype --events --flow_label --flows --flows_burst --force-link \
        --gid-index --hop_limit --ib-dev --ib-port --inline_recv --inline_size --ipv6 \
        --iters --kek_path --latency_gap --limit_bw --limit_msgrate --log_active_dci_streams \
        --log_dci_streams --mac_fwd --margin --mcg --MGID --mmap --mmap-offset --mr_per_qp \
        --mtu --noPeak --odp --out_json --out_json_file --output --outs --perform_warm_up \
        --pkey_index --port --post_list --promiscuous --qp --qp-timeout --rate_limit \
        --rate_limit_type --rate_units --raw_ipv6 --raw_mcast --rdma_cm --recv_post_list \
        --reply_every --report-both --report-counters --report-cycles --report-histogram \
        --report-per-port --report-unsorted --report_gbits --retry_count --reversed \
        --run_infinitely --rx-depth --server --sig_before --size --sl --sniffer --source_ip \
        --source_mac --source_port --tclass --tcp --tos --tx-depth --typical_pkt_size \
        --use-srq --use_hugepages --use_old_post_send --use_rss --vector --vlan_en \
        --vlan_pcp --wait_destroy";

    #[test]
    fn every_option_of_debian_s_version_is_in_the_table() {
        let known: Vec<String> =
            PERFTEST.words.iter().flat_map(|word| word.there).map(|word| plain(word)).collect();
        let missing: Vec<&str> =
            OF_4_5.split_whitespace().filter(|option| !known.contains(&plain(option))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
