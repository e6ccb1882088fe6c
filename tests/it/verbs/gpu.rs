//! Memory that is not this host's. No machine of the tests has a GPU, so libraries that are made
//! here take the places of CUDA's driver, HIP and HSA: they hand out memory of the process, each
//! process filled with bytes of its own, and write down what they are called for. Soft-RoCE takes
//! that memory by its address.

use super::refusals::assert_refused;
use super::{counts, granted, has_device, program, run_to_end};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use wiregauge_test_support::bounded::output;

const FAKES: &str = r#"
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static int called(const char *what) {
    char line[128];
    int length = snprintf(line, sizeof line, "%d %s\n", (int)getpid(), what);
    int file = open(getenv("FAKE_CALLS"), O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (write(file, line, length) != length) abort();
    close(file);
    return 0;
}
static unsigned char *made;
static size_t made_bytes;
static void *memory(size_t bytes) {
    made = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    made_bytes = bytes;
    memset(made, getpid(), bytes);
    return made;
}
static int release(const char *what) {
    unsigned char own = getpid();
    int others = 0;
    for (size_t i = 0; i < made_bytes && !others; i++) others = made[i] != own;
    if (others && getenv("FAKE_COMPARES")) called("bytes of another process");
    return called(what);
}
int cuInit(unsigned flags) { return called("cuInit"); }
int cuDeviceGetCount(int *count) { *count = 2; return called("cuDeviceGetCount"); }
int cuDeviceGet(int *device, int number) { *device = number; return called("cuDeviceGet"); }
int cuDevicePrimaryCtxRetain(void **to, int device) {
    *to = to; return called("cuDevicePrimaryCtxRetain");
}
int cuDevicePrimaryCtxRelease_v2(int device) { return called("cuDevicePrimaryCtxRelease"); }
int cuCtxSetCurrent(void *context) { return called("cuCtxSetCurrent"); }
int cuMemAlloc_v2(unsigned long long *at, size_t bytes) {
    *at = (uintptr_t)memory(bytes);
    return called(bytes % (2 << 20) ? "cuMemAlloc of a part of a page" : "cuMemAlloc");
}
int cuMemFree_v2(unsigned long long at) { return release("cuMemFree"); }
int cuGetErrorName(int error, const char **name) { *name = "CUDA_ERROR_FAKE"; return 0; }
int cuMemGetHandleForAddressRange(void *to, unsigned long long at, size_t bytes, int kind,
                                  unsigned long long flags) {
    called(kind == 1 ? "export" : "export of another kind");
    if (getenv("FAKE_EXPORTS")) { *(int *)to = memfd_create("dma-buf", 0); return 0; }
    return 801;
}
int hipGetDeviceCount(int *count) { *count = 1; return called("hipGetDeviceCount"); }
int hipSetDevice(int device) { return called("hipSetDevice"); }
int hipMalloc(void **at, size_t bytes) { *at = memory(bytes); return called("hipMalloc"); }
int hipFree(void *at) { return release("hipFree"); }
const char *hipGetErrorName(int error) { return "hipErrorFake"; }
int hsa_amd_portable_export_dmabuf(const void *at, size_t bytes, int *to, uint64_t *offset) {
    called("export");
    return 0x1000;
}
"#;

/// A folder with the libraries; it goes with its owner.
struct Fakes(PathBuf);

impl Fakes {
    fn new() -> Fakes {
        let folder = std::env::temp_dir().join(format!("wiregauge-gpu-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let (source, built) = (folder.join("fakes.c"), folder.join("libcuda.so.1"));
        std::fs::write(&source, format!("#define _GNU_SOURCE\n{FAKES}")).unwrap();
        let mut cc = Command::new("cc");
        let made = output(cc.args(["-shared", "-fPIC", "-o"]).arg(&built).arg(&source));
        assert!(made.status.success(), "{made:?}");
        for name in ["libamdhip64.so", "libhsa-runtime64.so.1"] {
            std::fs::copy(&built, folder.join(name)).unwrap();
        }
        Fakes(folder)
    }

    fn calls(&self) -> PathBuf {
        self.0.join("calls")
    }

    /// A run with them, and what each of its processes has called. `more`: a variable for them.
    fn run(&self, words: &str, more: &str) -> (Result<Value, String>, Vec<Vec<String>>) {
        let _ = std::fs::remove_file(self.calls());
        let mut command = program();
        command.current_dir(&self.0).args(words.split_whitespace()).args(["--rounds", "1"]);
        command.args(["--transport", "verbs", "--json"]);
        // Ends that spin starve emulated machines.
        if !words.contains("--wait") {
            command.args(["--wait", "block"]);
        }
        command.env("LD_LIBRARY_PATH", &self.0).env("FAKE_CALLS", self.calls());
        if !more.is_empty() {
            command.env(more, "1");
        }
        let ended = run_to_end(&mut command);
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        let record = match ended.status.success() {
            true => Ok(serde_json::from_slice(&ended.stdout).unwrap()),
            false => Err(told),
        };
        (record, each_process(&self.calls()))
    }
}

impl Drop for Fakes {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The calls of each process, in their order.
fn each_process(file: &Path) -> Vec<Vec<String>> {
    let mut of_process = std::collections::BTreeMap::<String, Vec<String>>::new();
    for line in std::fs::read_to_string(file).unwrap_or_default().lines() {
        let (process, call) = line.split_once(' ').unwrap();
        of_process.entry(process.into()).or_default().push(call.into());
    }
    of_process.into_values().collect()
}

#[test]
fn memory_of_a_gpu_is_allocated_exported_registered_and_freed_in_this_order() {
    if !has_device() {
        return;
    }
    let fakes = Fakes::new();
    let cuda = [
        "cuInit",
        "cuDeviceGetCount",
        "cuDeviceGet",
        "cuDevicePrimaryCtxRetain",
        "cuCtxSetCurrent",
        "cuMemAlloc",
        "export",
        "cuCtxSetCurrent",
        "cuMemFree",
        "cuDevicePrimaryCtxRelease",
    ];
    let rocm = ["hipGetDeviceCount", "hipSetDevice", "hipMalloc", "export", "hipFree"];
    let write = "bandwidth --operation write --size 4096 --time 50ms --wait block";
    let read = "latency --operation read --size 64 --count 20";
    for (words, memory, exports, right) in [
        (write, "cuda:1", "", cuda.as_slice()),
        // A dma-buf that the adapter does not take.
        (read, "cuda:0", "FAKE_EXPORTS", cuda.as_slice()),
        (write, "rocm:0", "", rocm.as_slice()),
    ] {
        let (record, calls) = fakes.run(&format!("{words} --memory {memory}"), exports);
        let record = record.unwrap_or_else(|told| panic!("{memory}: {told}"));
        assert_eq!(granted(&record, "memory"), memory);
        assert_eq!(granted(&record, "registered_by"), "ibv_reg_mr");
        assert_eq!(granted(&record, "inline"), "off");
        assert_eq!(calls, [right, right], "{memory}: both ends");
    }
    let (_, calls) = fakes.run(&format!("{write} --memory host,cuda"), "");
    assert_eq!(calls.len(), 1, "one end's memory is a GPU's");
    let (refused, _) = fakes.run(&format!("{write} --memory cuda:2"), "");
    assert!(refused.unwrap_err().contains("use cuda:0 to 1"));
}

#[test]
fn memory_that_is_not_there_or_not_read_is_refused() {
    if !has_device() {
        return;
    }
    for (words, names) in [
        ("bandwidth --operation write --memory device", "no memory of its own"),
        ("bandwidth --operation write --memory cuda", "libcuda.so.1 is not installed"),
        ("bandwidth --operation write --memory rocm", "libamdhip64.so is not installed"),
        ("latency --memory cuda --check", "leave --check out"),
        ("stream --memory cuda --rate 100/s", "use latency, oneway or bandwidth"),
        ("rpc --memory cuda --workload 100B", "use latency, oneway or bandwidth"),
        ("latency --operation write --memory cuda", "use --operation send or write_imm"),
        ("latency --queue-pairs 2 --memory cuda", "--operation send_imm, which sends the number"),
        ("bandwidth --operation write --memory device --inline 64", "--inline does not work"),
    ] {
        assert_refused(words, names);
    }
}

#[test]
fn messages_go_from_a_gpu_s_memory_to_a_gpu_s_memory_and_keep_their_numbers() {
    if !has_device() {
        return;
    }
    let fakes = Fakes::new();
    let order = "order of arrival";
    for (words, by) in [
        ("latency --count 40 --memory cuda:0 --wait busy", order),
        ("latency --count 40 --memory rocm --wait block --burst 7", order),
        ("oneway --count 40 --memory cuda:0 --burst 5", order),
        ("latency --count 40 --memory cuda:1 --operation send_imm --burst 3", "immediate value"),
        ("latency --count 40 --memory cuda --operation send_imm --service ud", "immediate value"),
        ("latency --count 40 --memory cuda --operation write_imm --burst 9", "slot of the write"),
        (
            "bandwidth --time 50ms --memory cuda --size 512 --operation send_imm --queue-pairs 3",
            "immediate value",
        ),
        ("bandwidth --time 50ms --memory cuda --size 1024 --direction bi", order),
    ] {
        let (record, calls) = fakes.run(words, "FAKE_COMPARES");
        let record = record.unwrap_or_else(|told| panic!("{words}: {told}"));
        let run = &record["runs"][0];
        let (sent, received) = (counts(run, "sent"), counts(run, "received"));
        assert!(sent >= 40, "{words}: {sent}");
        if !words.contains("ud") {
            assert_eq!(received, sent, "{words}");
        }
        for name in ["duplicates", "corrupt"] {
            assert_eq!(counts(run, name), 0, "{words}: {name}");
        }
        if !words.contains("queue-pairs") {
            assert_eq!(counts(run, "reordered"), 0, "{words}");
        }
        assert_eq!(granted(&record, "numbered_by"), by, "{words}");
        assert_eq!(granted(&record, "inline"), "off", "{words}");
        let carried = calls.iter().filter(|calls| calls.iter().any(|call| call.contains("bytes")));
        assert!(carried.count() >= 1, "{words}: the payload came from memory of the other end");
    }
}

#[test]
fn one_end_in_a_gpu_s_memory_is_enough_that_no_payload_is_read() {
    if !has_device() {
        return;
    }
    let fakes = Fakes::new();
    for memory in ["cuda:0,host", "host,cuda:0"] {
        let (record, calls) = fakes.run(&format!("latency --count 40 --memory {memory}"), "");
        let record = record.unwrap_or_else(|told| panic!("{memory}: {told}"));
        assert_eq!(calls.len(), 1, "{memory}");
        assert_eq!(counts(&record["runs"][0], "received"), counts(&record["runs"][0], "sent"));
        let at = |end: &str, name: &str| {
            record["runs"][0]["rounds"][0][end]["effective_settings"][name].clone()
        };
        let (client, server) = memory.split_once(',').unwrap();
        assert_eq!(
            (at("client", "memory"), at("server", "memory")),
            (client.into(), server.into())
        );
        assert_eq!(at("server", "numbered_by"), "order of arrival", "{memory}");
    }
}
