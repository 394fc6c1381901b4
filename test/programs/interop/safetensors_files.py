"""Reads the safetensors files that test/programs/interop_safetensors.mjs wrote, compares them, and writes its own.

Exits with 0 where all files are equal; prints the element types that the installed package does not know.
"""
import ctypes, json, os, sys
import numpy, safetensors
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

folder = sys.argv[1]
def path(name): return os.path.join(folder, name)
def content(name):
    with open(path(name), "rb") as file: return file.read()

kept = []
def spec(tensor):
    data = content(tensor["data"])
    buffer = ctypes.create_string_buffer(data, max(1, len(data)))
    kept.append(buffer)
    shape = list(tensor["shape"])
    # The package expects the shape in pairs and writes the shape in elements.
    if tensor["code"] == "F4": shape[-1] //= 2
    return safetensors.TensorSpec(dtype=tensor["python"], shape=shape,
                                  data_ptr=ctypes.addressof(buffer), data_len=len(data))

with open(path("cases.json"), encoding="utf-8") as file: cases = json.load(file)
unknown = set()
for case in cases["files"]:
    written = content(case["name"])
    read = dict(safetensors.deserialize(written))
    assert set(read) == {t["name"] for t in case["tensors"]}, (case["name"], list(read))
    for tensor in case["tensors"]:
        found = read[tensor["name"]]
        assert found["dtype"] == tensor["code"], (case["name"], tensor, found["dtype"])
        assert list(found["shape"]) == tensor["shape"], (case["name"], tensor, found["shape"])
        assert bytes(found["data"]) == content(tensor["data"]), (case["name"], tensor["name"])
    with safe_open(path(case["name"]), framework="np") as file:
        metadata = file.metadata() or {}
    expected = case["metadata"]
    if case["layouts"]: metadata = {k: v for k, v in metadata.items() if not k.startswith("tilework.layout.")}
    assert metadata == expected, (case["name"], metadata)
    if case["layouts"]: continue
    try:
        tensors = {t["name"]: spec(t) for t in case["tensors"]}
    except Exception as error:
        unknown.add(str(error)[:60])
        continue
    own = bytes(safetensors.serialize(tensors, metadata=expected or None))
    # The package writes several metadata in the order of its hashes.
    if len(expected) < 2: assert own == written, case["name"] + ": the bytes differ"
    else: assert len(own) == len(written), case["name"] + ": the lengths differ"
    with open(path("python-" + case["name"]), "wb") as file: file.write(own)

def same(one, other):
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()

arrays = load_file(path(cases["numpy"]["name"]))
for tensor in cases["numpy"]["tensors"]:
    array = numpy.frombuffer(content(tensor["data"]), dtype=tensor["python"]).reshape(tensor["shape"])
    assert same(arrays[tensor["name"]], array), tensor["name"]
save_file(arrays, path("python-numpy.safetensors"), metadata={"format": "np"})

with open(path(cases["index"]), encoding="utf-8") as file: index_text = file.read()
index = json.loads(index_text)
assert index_text == json.dumps(index, indent=2, sort_keys=True, ensure_ascii=False) + "\n", "the index is spelled otherwise"
shards = {}
for name in sorted(set(index["weight_map"].values())):
    shards[name] = load_file(os.path.join(os.path.dirname(path(cases["index"])), name))
assert sum(len(shard) for shard in shards.values()) == len(index["weight_map"])
assert sum(a.nbytes for shard in shards.values() for a in shard.values()) == index["metadata"]["total_size"]
for tensor, name in index["weight_map"].items(): assert same(shards[name][tensor], arrays[tensor]), tensor

os.mkdir(path("python-shards"))
names = sorted(arrays)
parts = [names[at::3] for at in range(3)]
weight_map = {}
for at, part in enumerate(parts):
    file = "model-%05d-of-%05d.safetensors" % (at + 1, len(parts))
    save_file({name: arrays[name] for name in part}, path(os.path.join("python-shards", file)), metadata={"format": "np"})
    weight_map.update({name: file for name in part})
with open(path("python-shards/model.safetensors.index.json"), "w", encoding="utf-8") as file:
    json.dump({"metadata": {"total_size": sum(a.nbytes for a in arrays.values())}, "weight_map": weight_map}, file, indent=2, sort_keys=True)
def accepts(data):
    try: safetensors.deserialize(data)
    except Exception: return False
    return True

with open(path("changed.json"), encoding="utf-8") as file: changed = json.load(file)
accepted = [accepts(bytes.fromhex(text)) for text in changed]
print(json.dumps({"accepted": accepted, "version": safetensors.__version__, "unknown": sorted(unknown)}))
