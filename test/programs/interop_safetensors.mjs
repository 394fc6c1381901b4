/**
 * Shows that tilework and the Python package safetensors read each other's files bit for bit, and write the same bytes:
 * `node test/programs/interop_safetensors.mjs`. Needs `dist` and the addon, and Python 3 with the packages safetensors
 * (0.8 or newer) and numpy; without them it says so and ends well.
 *
 * tilework writes files and a list of what is in them; Python reads them, compares, writes the same tensors its own
 * way; tilework reads those.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { asTensor, check, DTYPES, open, reorder, save, serialize } from '../../dist/index.js'
import { generator, seededBytes } from '../../scripts/seeded.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'

/** Element types by the names that the Python package has for them, and their codes in a file. */
const TYPES = [
  ['bool', 'bool', 'BOOL'],
  ['float4_e2m1fn', 'float4_e2m1fn_x2', 'F4'],
  ['uint8', 'uint8', 'U8'],
  ['int8', 'int8', 'I8'],
  ['float8_e5m2', 'float8_e5m2', 'F8_E5M2'],
  ['float8_e4m3fn', 'float8_e4m3fn', 'F8_E4M3'],
  ['float8_e8m0fnu', 'float8_e8m0fnu', 'F8_E8M0'],
  ['float8_e4m3fnuz', 'float8_e4m3fnuz', 'F8_E4M3FNUZ'],
  ['float8_e5m2fnuz', 'float8_e5m2fnuz', 'F8_E5M2FNUZ'],
  ['int16', 'int16', 'I16'],
  ['uint16', 'uint16', 'U16'],
  ['float16', 'float16', 'F16'],
  ['bfloat16', 'bfloat16', 'BF16'],
  ['int32', 'int32', 'I32'],
  ['uint32', 'uint32', 'U32'],
  ['float32', 'float32', 'F32'],
  ['complex64', 'complex64', 'C64'],
  ['float64', 'float64', 'F64'],
  ['int64', 'int64', 'I64'],
  ['uint64', 'uint64', 'U64'],
].map(([dtype, python, code]) => ({ dtype, python, code }))

const SHAPES = [[3, 4], [2], [5, 0, 4], [], [1, 2, 3, 1, 2]]
const NAMES = [
  'weight',
  'a',
  'Z',
  'ünï/cödé',
  '\u{1f3b2}',
  '\uff21',
  '',
  '__proto__',
  'quote " \\ \n \u0001 \u007f',
  '10',
  '9',
]

/** What a reader of JSON, of numbers or of names may take for something else. */
const PIECES = [
  '0',
  '-0',
  '1.0',
  '1e400',
  '18446744073709551616',
  '""',
  'null',
  '[',
  ']',
  '{',
  '}',
  ',',
  ':',
  '"',
  '\\',
]
const LONGER_PIECES = [
  '\\u0061',
  '\\ud800',
  ' ',
  '\n',
  '\0',
  '/**/',
  '"shape"',
  '"x":1,',
  '"F4"',
  '"__metadata__"',
  '\ufeff',
]
const CHANGES = 3000

/** Ends with 0 where all holds; prints the types that this version of the package does not know. */
const PYTHON = String.raw`
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
    # The package takes the shape of pairs and writes that of elements.
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
`

const missing = missingPython()
if (missing === undefined) await run()
else console.log(`interop with safetensors: skipped, ${missing}`)

function missingPython() {
  const probe = 'import numpy, safetensors; safetensors.TensorSpec; print("ready")'
  const { status, stderr, error } = spawnSync('python3', ['-c', probe], { encoding: 'utf8' })
  if (error) return `python3 cannot be run (${error.code})`
  return status === 0 ? undefined : (stderr.trim().split('\n').at(-1) ?? 'python3 failed')
}

async function run() {
  const folder = makeWorkFolder('interop-safetensors')
  const random = generator(20_260)
  const cases = await writeCases(folder, random)
  writeFileSync(join(folder, 'cases.json'), JSON.stringify(cases))
  const changed = changedFiles(folder, random)
  writeFileSync(join(folder, 'changed.json'), JSON.stringify(changed.map((bytes) => bytes.toString('hex'))))
  const { version, unknown, accepted } = runPython(folder)
  for (const { name, tensors, metadata, layouts } of cases.files) {
    if (!layouts) await compare(join(folder, `python-${name}`), tensors, folder, metadata)
  }
  await compare(join(folder, 'python-numpy.safetensors'), cases.numpy.tensors, folder, { format: 'np' })
  const index = join(folder, 'python-shards', 'model.safetensors.index.json')
  await compare(index, cases.numpy.tensors, folder, { format: 'np' })
  assert.deepEqual(unknown, [], 'the package does not know a type')
  const strictly = await compareVerdicts(changed, accepted)
  const count = cases.files.reduce((sum, { tensors }) => sum + tensors.length, 0)
  console.log(
    `interop with safetensors ${version}: ${cases.files.length} files, ${count} tensors, shards: all equal`,
  )
  console.log(
    `${changed.length} changed files: ${strictly} pass strict checks, and the package reads all of those`,
  )
}

/** Files with one or two changes in the header, whose length is mended. */
function changedFiles(folder, random) {
  const pieces = [...PIECES, ...LONGER_PIECES]
  const pick = (list) => list[Math.floor(random() * list.length)]
  const seeds = ['metadata', 'names', 'empty', 'F4', 'BOOL'].map((name) =>
    readFileSync(join(folder, `${name}.safetensors`)),
  )
  return Array.from({ length: CHANGES }, () => {
    let bytes = pick(seeds)
    for (let changes = 1 + Math.floor(random() * 2); changes > 0; changes--) {
      const header = bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE()))
      const at = Math.floor(random() * (header.length + 1))
      const removed = Math.floor(random() * 4)
      const parts = [header.subarray(0, at), Buffer.from(pick(pieces)), header.subarray(at + removed)]
      const length = Buffer.alloc(8)
      length.writeBigUInt64LE(BigInt(parts.reduce((sum, part) => sum + part.length, 0)))
      bytes = Buffer.concat([length, ...parts, bytes.subarray(8 + header.length)])
    }
    return bytes
  })
}

/** Whatever passes the strict check, the reference reads. Gives how many do. */
async function compareVerdicts(changed, accepted) {
  let clean = 0
  for (const [at, bytes] of changed.entries()) {
    const findings = await check(bytes, { level: 'strict', format: 'safetensors' })
    if (findings.some(({ severity }) => severity === 'error')) continue
    clean += 1
    assert.ok(accepted[at], `the reference refuses ${JSON.stringify(bytes.toString('latin1').slice(0, 400))}`)
  }
  assert.ok(clean > CHANGES / 50, 'too few changed files are good to compare')
  return clean
}

function runPython(folder) {
  const { status, stdout, stderr } = spawnSync('python3', ['-c', PYTHON, folder], { encoding: 'utf8' })
  assert.equal(status, 0, `Python found a difference:\n${stderr}`)
  return JSON.parse(stdout.trim().split('\n').at(-1))
}

/** Files of every type alone, of all together in random order, with metadata, blocked; and shards. */
async function writeCases(folder, random) {
  const files = []
  let made = 0
  const make = (type, name, shape) => {
    const data = `data-${made++}.bin`
    const bytes = bytesFor(type.dtype, shape, made)
    writeFileSync(join(folder, data), bytes)
    return { ...type, name, shape, data }
  }
  const write = async (name, tensors, metadata = {}) => {
    await save(
      join(folder, name),
      tensors.map((one) => tensorOf(one, folder)),
      { metadata },
    )
    files.push({ name, tensors, metadata, layouts: false })
  }
  for (const type of TYPES) {
    const shapes = SHAPES.filter((shape) => type.code !== 'F4' || (shape.at(-1) ?? 1) % 2 === 0)
    const tensors = shapes.map((shape, at) => make(type, `t${at}`, shape))
    await write(`${type.code}.safetensors`, tensors)
  }
  const mixed = Array.from({ length: 60 }, (_, at) =>
    make(TYPES[Math.floor(random() * TYPES.length)], `layer.${Math.floor(random() * 1e6)}.${at}`, [2, 2]),
  )
  await write('mixed.safetensors', mixed, { format: 'pt' })
  await write(
    'names.safetensors',
    NAMES.map((name) => make(TYPES[15], name, [2])),
    { 'ü"\\\n': '\u{1f3b2}' },
  )
  await write('metadata.safetensors', mixed.slice(0, 2), { format: 'pt', '': '', 10: 'x', nested: '{"a":1}' })
  await write('empty.safetensors', [])
  files.push(await writeBlocked(folder))
  const byNumpy = TYPES.filter(({ code }) => code !== 'F4' && code !== 'BF16' && !code.startsWith('F8'))
  const plain = byNumpy.flatMap((type) => SHAPES.map((shape, at) => make(type, `${type.code}.${at}`, shape)))
  await save(
    join(folder, 'numpy.safetensors'),
    plain.map((one) => tensorOf(one, folder)),
  )
  mkdirSync(join(folder, 'shards'))
  const index = join('shards', 'model.safetensors.index.json')
  await save(
    join(folder, index),
    plain.map((one) => tensorOf(one, folder)),
    { maxShardBytes: 400 },
  )
  await compare(join(folder, index), plain, folder, {})
  return { files, numpy: { name: 'numpy.safetensors', tensors: plain }, index }
}

/** A blocked tensor: Python sees the array of its digits, tilework the tensor. */
async function writeBlocked(folder) {
  const shape = [2, 19, 5, 7]
  const bytes = seededBytes(2 * 19 * 5 * 7 * 4, 7)
  const plain = storedTensor('conv', 'float32', shape, bytes)
  const blocked = reorder(plain, 'b_fs_yx_fsv16')
  const name = 'blocked.safetensors'
  await save(join(folder, name), [blocked])
  writeFileSync(join(folder, 'blocked.bin'), await blocked.bytes())
  const file = await open(join(folder, name))
  assert.deepEqual(file.tensors.at(0).shape, shape)
  assert.equal(file.tensors.at(0).storage.layout, 'b_fs_yx_fsv16')
  assert.deepEqual(await reorder(file.tensors.at(0), 'row_major').bytes(), bytes)
  file.close()
  const stored = { ...TYPES[15], name: 'conv', shape: [2, 2, 5, 7, 16], data: 'blocked.bin' }
  return { name, tensors: [stored], metadata: {}, layouts: true }
}

function bytesFor(dtype, shape, seed) {
  const elements = shape.reduce((product, extent) => product * extent, 1)
  const bytes = seededBytes((elements * DTYPES[dtype].bits) / 8, seed)
  return dtype === 'bool' ? bytes.map((byte) => (byte >> 3) & 1) : bytes
}

function tensorOf({ name, dtype, shape, data }, folder) {
  return storedTensor(name, dtype, shape, new Uint8Array(readFileSync(join(folder, data))))
}

function storedTensor(name, dtype, shape, bytes) {
  return asTensor({ dtype, shape, bytes: () => bytes }, { name })
}

/** Opens a file at the strict level, compares all of it, and writes it again. */
async function compare(path, tensors, folder, metadata) {
  assert.deepEqual(await check(path, { level: 'strict' }), [], path)
  const file = await open(path, { level: 'strict' })
  assert.equal(file.format, 'safetensors')
  assert.equal(file.tensors.length, tensors.length, path)
  for (const { name, dtype, shape, data } of tensors) {
    const found = file.tensors.get(name)
    assert.deepEqual({ dtype: found?.dtype, shape: found?.shape }, { dtype, shape }, `${path}: ${name}`)
    assert.deepEqual(Buffer.from(await found.bytes()), readFileSync(join(folder, data)), `${path}: ${name}`)
    assert.deepEqual(Object.fromEntries(found.metadata), metadata, `${path}: ${name}`)
  }
  const isPlain = path.endsWith('.safetensors')
  if (isPlain && tensors.length > 0 && Object.keys(metadata).length < 2) {
    const again = await serialize([...file.tensors], { format: 'safetensors' })
    assert.deepEqual(Buffer.from(again), readFileSync(path), `${path}: written again`)
  }
  file.close()
}
