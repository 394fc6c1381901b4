"""gguf-py beside tilework, asked by gguf.mjs. Each line of standard input is a case:
{ model } writes a sparse model of 10 GB with 500 tensors and 150,000 tokens, answered by true;
{ write, type } a file with one tensor of random blocks, answered by whether gguf-py knows the type;
{ read, type, numbers, seconds } is answered by { dequantize, quantize }: CPU seconds of a call."""
import json
import os
import sys
import time

import numpy as np
from gguf import GGUFReader, GGUFWriter
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize, quantize

TENSORS = 500
TOKENS = 150_000
FILE_BYTES = 10_000_000_000
# A matrix of a language model.
ROWS = 1024
COLUMNS = 4096


def write_model(path):
    kind = GGMLQuantizationType.Q4_K
    elements, block_bytes = GGML_QUANT_SIZES[kind]
    rows = FILE_BYTES // TENSORS // (COLUMNS // elements * block_bytes)
    row_bytes = COLUMNS // elements * block_bytes
    writer = GGUFWriter(path, "llama")
    writer.add_token_list([f"token{index}" for index in range(TOKENS)])
    writer.add_token_scores([float(-index) for index in range(TOKENS)])
    for index in range(TENSORS):
        writer.add_tensor_info(f"blk.{index}.ffn_down.weight", (rows, row_bytes), np.uint8, rows * row_bytes, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    start = -(-os.path.getsize(path) // 32) * 32
    each = -(-rows * row_bytes // 32) * 32
    os.truncate(path, start + TENSORS * each)


def cpu_seconds(run, seconds):
    run()
    started = time.process_time()
    calls = 0
    while True:
        run()
        calls += 1
        spent = time.process_time() - started
        if spent >= seconds:
            return spent / calls


def write_blocks(path, name):
    kind = GGMLQuantizationType.__members__.get(name.upper())
    if kind is None:
        return False
    elements, block_bytes = GGML_QUANT_SIZES[kind]
    blocks = np.random.default_rng(1).integers(0, 256, (ROWS, COLUMNS // elements * block_bytes), np.uint8)
    writer = GGUFWriter(path, "llama")
    writer.add_tensor("weight", blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return True


def times(case):
    blocks = GGUFReader(case["read"]).tensors[0].data
    kind = GGMLQuantizationType[case["type"].upper()]
    found = {}
    try:
        found["dequantize"] = cpu_seconds(lambda: dequantize(blocks, kind), case["seconds"])
    except NotImplementedError:
        return found
    if case["numbers"] is not None:
        numbers = np.fromfile(case["numbers"], np.float32).reshape(ROWS, COLUMNS)
        found["quantize"] = cpu_seconds(lambda: quantize(numbers, kind), case["seconds"])
    return found


def answer(case):
    if "model" in case:
        write_model(case["model"])
        return True
    if "write" in case:
        return write_blocks(case["write"], case["type"])
    return times(case)


np.seterr(all="ignore")
for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
